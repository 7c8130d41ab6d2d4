/* The coordinator, function by function that of modurob/distributed/bus/coordinator.py and
 * survey.py: collects reports, asks for missing ones, finds the tree. */
#include "modurob/coordinator.h"

#include <string.h>

#include "bus_links.h"

#define PORT 0        /* of the base */
#define PATIENCE 3.0  /* heartbeats until a module that does not answer is left out */
#define LIFETIME 8.0  /* heartbeats that a message may travel */
#define EXPIRY 60.0   /* heartbeats until a silent module out of the tree is dropped */
#define EPOCH 1U      /* the coordinator never looks for a way */

mr_status mr_coordinator_start(mr_coordinator *coordinator, uint32_t boot, uint64_t beat,
                               const mr_text *port, double heartbeat,
                               const mr_node_outputs *outputs) {
  mr_node_settings settings;
  memset(&settings, 0, sizeof settings); /* the coordinator's id is 0 */
  settings.boot = boot;
  settings.ports = port;
  settings.port_count = 1;
  settings.heartbeat = heartbeat;
  memset(coordinator, 0, sizeof *coordinator);
  coordinator->beat = beat;
  return mr_node_start(&coordinator->links, &settings, outputs);
}

mr_entry *mr_coordinator_entry(mr_coordinator *coordinator, const mr_bus_address *address) {
  for (size_t k = 0; k < MR_BUS_MAX_ENTRIES; k++) {
    mr_entry *entry = &coordinator->entries[k];
    if (entry->is_used && mr_address_equal(&entry->address, address)) return entry;
  }
  return NULL;
}

static bool same_uid(const mr_bus_address *a, const mr_bus_address *b) {
  return memcmp(a->uid, b->uid, sizeof a->uid) == 0;
}

/* -- the tree ---------------------------------------------------------------------------------------- */

static void find(mr_survey *survey, mr_finding_kind kind, const mr_bus_address *parent,
                 const mr_neighbor *docking) {
  mr_finding *finding = &survey->findings[survey->count];
  if (survey->count == MR_BUS_MAX_FINDINGS) {
    survey->is_cut = true;
    return;
  }
  survey->count++;
  memset(finding, 0, sizeof *finding);
  finding->kind = kind;
  finding->parent = *parent;
  finding->port = docking->port;
  finding->child = docking->address;
  finding->child_port = docking->their_port;
  finding->turn = docking->turn;
}

static const mr_finding *attached(const mr_survey *survey, const mr_bus_address *module) {
  for (uint16_t k = 0; k < survey->count; k++)
    if (survey->findings[k].kind == MR_ATTACHED &&
        mr_address_equal(&survey->findings[k].child, module))
      return &survey->findings[k];
  return NULL;
}

/* The module with an id, among those of the tree and beyond silent ones. */
static const mr_bus_address *with_uid(const mr_survey *survey, const mr_bus_address *address) {
  for (uint16_t k = 0; k < survey->count; k++) {
    const mr_finding *finding = &survey->findings[k];
    if ((finding->kind == MR_ATTACHED || finding->kind == MR_LOST) &&
        same_uid(&finding->child, address))
      return &finding->child;
  }
  return NULL;
}

/* Whether a docking was followed already, from either side. */
static bool is_known(const mr_survey *survey, const mr_bus_address *module, const mr_text *port) {
  for (uint16_t k = 0; k < survey->count; k++) {
    const mr_finding *finding = &survey->findings[k];
    if ((finding->kind == MR_ATTACHED || finding->kind == MR_RING) &&
        ((mr_address_equal(&finding->parent, module) && mr_text_equal(&finding->port, port)) ||
         (mr_address_equal(&finding->child, module) &&
          mr_text_equal(&finding->child_port, port))))
      return true;
  }
  return false;
}

/* The same docking in the report of its other side, if that has seen it too. */
static const mr_neighbor *back(mr_coordinator *coordinator, const mr_bus_address *module,
                               const mr_neighbor *docking) {
  const mr_entry *entry = mr_coordinator_entry(coordinator, &docking->address);
  if (!entry || !entry->has_report) return NULL;
  for (uint8_t k = 0; k < entry->neighbor_count; k++) {
    const mr_neighbor *seen = &entry->neighbors[k];
    if (mr_text_equal(&seen->port, &docking->their_port) &&
        mr_address_equal(&seen->address, module) &&
        mr_text_equal(&seen->their_port, &docking->port))
      return seen->presence == MR_BUS_HEARD ? seen : NULL;
  }
  return NULL;
}

/* One docking, seen from the side of the base. */
static void follow(mr_coordinator *coordinator, mr_survey *survey, const mr_bus_address *module,
                   const mr_neighbor *docking) {
  const mr_neighbor *other = NULL;
  const mr_bus_address *twin;
  if (docking->presence == MR_BUS_SILENT) {
    find(survey, MR_SILENT, module, docking);
    return;
  }
  if (docking->presence == MR_BUS_EXPECTED) {
    find(survey, MR_UNHEARD, module, docking);
    return;
  }
  other = back(coordinator, module, docking);
  twin = with_uid(survey, &docking->address);
  if (mr_address_equal(&docking->address, &coordinator->links.address) ||
      (other && attached(survey, &docking->address))) {
    find(survey, MR_RING, module, docking);
  } else if (!other) {
    find(survey, MR_UNREPORTED, module, docking);
  } else if (other->turn != docking->turn) {
    find(survey, MR_SKEWED, module, docking);
  } else if (twin) {
    find(survey, MR_TWIN, twin, docking);
  } else {
    find(survey, MR_ATTACHED, module, docking);
  }
}

/* A docking to a silent module and all beyond: their connectors are still closed. */
static void lose(mr_coordinator *coordinator, mr_survey *survey, const mr_finding *silent) {
  struct {
    mr_bus_address parent, child;
    mr_text port;
  } stack[MR_BUS_MAX_FINDINGS];
  size_t height = 1;
  stack[0].parent = silent->parent;
  stack[0].child = silent->child;
  stack[0].port = silent->port;
  while (height > 0) {
    const mr_bus_address parent = stack[--height].parent, child = stack[height].child;
    const mr_text port = stack[height].port;
    const mr_entry *entry = mr_coordinator_entry(coordinator, &child);
    const mr_neighbor *near = NULL;
    mr_neighbor docking;
    if (!entry || !entry->has_report || with_uid(survey, &child)) continue;
    /* by id: a parent that has started again is known there before it is known here */
    for (uint8_t k = 0; k < entry->neighbor_count && !near; k++)
      if (same_uid(&entry->neighbors[k].address, &parent) &&
          mr_text_equal(&entry->neighbors[k].their_port, &port))
        near = &entry->neighbors[k];
    if (!near) continue;
    docking = *near;
    docking.port = port;
    docking.address = child;
    docking.their_port = near->port;
    find(survey, MR_LOST, &parent, &docking);
    for (uint8_t k = entry->neighbor_count; k > 0; k--) {
      if (&entry->neighbors[k - 1] == near) continue;
      if (height == MR_BUS_MAX_FINDINGS) {
        survey->is_cut = true;
        continue;
      }
      stack[height].parent = child;
      stack[height].child = entry->neighbors[k - 1].address;
      stack[height++].port = entry->neighbors[k - 1].port;
    }
  }
}

/* Walk the tree from the base, breadth first, ports in the order of the reports. */
static void walk(mr_coordinator *coordinator, mr_survey *survey) {
  const mr_node *node = &coordinator->links;
  survey->count = 0;
  survey->is_cut = false;
  if (mr_is_open(node, PORT)) {
    const mr_bus_link *link = &node->links[PORT];
    mr_neighbor base;
    memset(&base, 0, sizeof base);
    base.port = node->ports[PORT];
    base.address = link->peer;
    base.their_port = link->peer_port;
    base.turn = link->turn;
    base.presence = link->presence;
    follow(coordinator, survey, &node->address, &base);
  }
  for (uint16_t at = 0; at < survey->count; at++) { /* grows while it is walked */
    const mr_bus_address module = survey->findings[at].child;
    const mr_entry *entry = mr_coordinator_entry(coordinator, &module);
    if (survey->findings[at].kind != MR_ATTACHED || !entry->has_report) continue;
    for (uint8_t k = 0; k < entry->neighbor_count; k++)
      if (!is_known(survey, &module, &entry->neighbors[k].port))
        follow(coordinator, survey, &module, &entry->neighbors[k]);
  }
  for (uint16_t at = 0, end = survey->count; at < end; at++)
    if (survey->findings[at].kind == MR_SILENT) lose(coordinator, survey, &survey->findings[at]);
  for (uint16_t at = 0, end = survey->count; at < end; at++) {
    const mr_finding finding = survey->findings[at];
    const mr_entry *entry = mr_coordinator_entry(coordinator, &finding.child);
    mr_neighbor module;
    if (finding.kind != MR_ATTACHED || entry->has_record) continue;
    memset(&module, 0, sizeof module);
    module.address = finding.child;
    find(survey, MR_UNREAD, &finding.child, &module);
  }
}

/* The next finding of a kind from an index on; NULL without one. */
static const mr_finding *next_of(const mr_survey *survey, mr_finding_kind kind, uint16_t *at) {
  while (*at < survey->count)
    if (survey->findings[(*at)++].kind == kind) return &survey->findings[*at - 1];
  return NULL;
}

static bool same_finding(const mr_finding *a, const mr_finding *b) {
  return mr_address_equal(&a->parent, &b->parent) && mr_address_equal(&a->child, &b->child) &&
         mr_text_equal(&a->port, &b->port) && mr_text_equal(&a->child_port, &b->child_port) &&
         a->turn == b->turn;
}

static bool same_survey(const mr_survey *a, const mr_survey *b) {
  if (a->count != b->count || a->is_cut != b->is_cut) return false;
  for (int kind = 0; kind < MR_FINDING_KINDS; kind++) {
    uint16_t at = 0, other_at = 0;
    const mr_finding *one, *other;
    do {
      one = next_of(a, (mr_finding_kind)kind, &at);
      other = next_of(b, (mr_finding_kind)kind, &other_at);
      if ((one == NULL) != (other == NULL) || (one && !same_finding(one, other))) return false;
    } while (one);
  }
  return true;
}

static bool is_complete(const mr_survey *survey) {
  for (uint16_t k = 0; k < survey->count; k++) {
    mr_finding_kind kind = survey->findings[k].kind;
    if (kind == MR_UNREPORTED || kind == MR_UNREAD || kind == MR_UNHEARD) return false;
  }
  return true;
}

/* Whether a module is in the tree, or beyond a silent one. */
static bool is_held(const mr_survey *survey, const mr_bus_address *module) {
  for (uint16_t k = 0; k < survey->count; k++) {
    const mr_finding *finding = &survey->findings[k];
    if ((finding->kind == MR_ATTACHED || finding->kind == MR_LOST) &&
        mr_address_equal(&finding->child, module))
      return true;
  }
  return false;
}

static void update_survey(mr_coordinator *coordinator, double now) {
  mr_survey *old = &coordinator->survey, *found = &coordinator->found;
  walk(coordinator, found);
  if (same_survey(old, found)) return;
  for (uint16_t k = 0; k < old->count; k++) {
    const mr_finding *gone = &old->findings[k];
    mr_entry *entry = mr_coordinator_entry(coordinator, &gone->child);
    if (gone->kind != MR_ATTACHED || !entry || attached(found, &gone->child)) continue;
    entry->is_driven = false;
    /* a module that comes back reports anew: until then its dockings are not known */
    if (!is_held(found, &gone->child)) entry->has_report = false;
  }
  *old = *found;
  coordinator->surveys++;
  coordinator->ready = false;
  coordinator->waiting_since = now;
}

/* -- messages from modules --------------------------------------------------------------------------- */

static mr_entry *free_entry(mr_coordinator *coordinator, const mr_bus_address *address) {
  for (size_t k = 0; k < MR_BUS_MAX_ENTRIES; k++) {
    mr_entry *entry = &coordinator->entries[k];
    if (entry->is_used) continue;
    memset(entry, 0, offsetof(mr_entry, record));
    entry->is_used = true;
    entry->address = *address;
    entry->reported.at = entry->sensed.at = entry->heard_at = -INFINITY;
    return entry;
  }
  return NULL;
}

static bool take_report(mr_entry *entry, mr_message *message) {
  if (message->neighbors > MR_MAX_KIND_PORTS) return false;
  entry->has_report = true;
  entry->name = message->name;
  entry->neighbor_count = message->neighbors;
  for (uint8_t k = 0; k < message->neighbors; k++)
    mr_read_neighbor(&message->rest, &entry->neighbors[k]);
  return true;
}

static void take_piece(mr_coordinator *coordinator, mr_entry *entry, const mr_message *message) {
  if (!mr_pieces_join(entry->written, entry->pieces, message)) return;
  if (entry->has_record && entry->record_size == message->total &&
      memcmp(entry->record, entry->written, message->total) == 0)
    return;
  memcpy(entry->record, entry->written, message->total);
  entry->record_size = message->total;
  entry->has_record = true;
  coordinator->records++;
}

static void file(mr_coordinator *coordinator, const uint8_t *data, size_t size, double now) {
  mr_message message;
  mr_entry *entry;
  const double lifetime = LIFETIME * coordinator->links.heartbeat;
  mr_newest *newest;
  if (mr_read_message(&message, data, size) != MR_OK || message.kind >= MR_BUS_ASK) {
    coordinator->links.ignored++;
    return;
  }
  entry = mr_coordinator_entry(coordinator, &message.address);
  if (!entry) entry = free_entry(coordinator, &message.address);
  if (!entry || (message.kind == MR_BUS_SENSE && message.rest.size > sizeof entry->values)) {
    coordinator->links.ignored++;
    return;
  }
  if (message.kind == MR_BUS_RECORD) {
    take_piece(coordinator, entry, &message);
  } else {
    newest = message.kind == MR_BUS_REPORT ? &entry->reported : &entry->sensed;
    if (mr_refuses(newest, message.number, now, lifetime)) return;
    if (message.kind == MR_BUS_REPORT && !take_report(entry, &message)) {
      coordinator->links.ignored++;
      return;
    }
    newest->number = message.number;
    newest->at = now;
  }
  entry->heard_at = now;
  if (message.kind != MR_BUS_SENSE) {
    coordinator->revision++; /* a reading does not change the tree */
    return;
  }
  entry->cycle = message.cycle;
  entry->value_count = (uint8_t)(message.rest.size / 8);
  for (uint8_t k = 0; k < entry->value_count; k++) entry->values[k] = mr_read_f64(&message.rest);
}

/* Drop modules that are neither in the tree nor heard. */
static void expire(mr_coordinator *coordinator, double now) {
  const double limit = now - EXPIRY * coordinator->links.heartbeat;
  for (size_t k = 0; k < MR_BUS_MAX_ENTRIES; k++) {
    mr_entry *entry = &coordinator->entries[k];
    if (entry->is_used && entry->heard_at < limit && !is_held(&coordinator->survey, &entry->address))
      entry->is_used = false;
  }
}

/* -- a step ------------------------------------------------------------------------------------------ */

static void send_hello(mr_coordinator *coordinator) {
  mr_links_hello(&coordinator->links, PORT, coordinator->beat, EPOCH, false);
}

static void down(mr_coordinator *coordinator, const uint8_t *message, size_t size, double now) {
  if (mr_is_open(&coordinator->links, PORT))
    mr_links_post(&coordinator->links, PORT, message, size, now);
}

void mr_coordinator_take(mr_coordinator *coordinator, const uint8_t *frame, size_t size,
                         double now) {
  mr_node *links = &coordinator->links;
  mr_arrival arrival;
  const uint8_t *message;
  coordinator->has_input = true;
  mr_links_take(links, PORT, frame, size, now, &arrival);
  if (arrival.kind == MR_FRAME_HELLO) {
    if (arrival.hello.number == 1 || links->links[PORT].hellos == 0) send_hello(coordinator);
  } else if (arrival.kind == MR_FRAME_DATA) {
    file(coordinator, arrival.data, arrival.size, now);
  } else if (arrival.kind == MR_FRAME_BATCH) {
    if (arrival.batch.complete) coordinator->answered = arrival.batch.number;
    while (mr_batch_next(&arrival.batch, &message, &size)) file(coordinator, message, size, now);
  }
}

void mr_coordinator_signal(mr_coordinator *coordinator, const uint8_t *signal, size_t size,
                           double now) {
  mr_message message;
  coordinator->has_input = true;
  if (mr_read_message(&message, signal, size) != MR_OK) {
    coordinator->links.ignored++;
  } else if (message.kind == MR_BUS_PLUGGED) {
    mr_links_plug(&coordinator->links, PORT, message.turn);
    send_hello(coordinator);
  } else if (message.kind == MR_BUS_UNPLUGGED) {
    mr_links_unplug(&coordinator->links, PORT);
  } else {
    down(coordinator, signal, size, now);
  }
}

static void ask(mr_coordinator *coordinator, const mr_request *request, double now) {
  uint8_t data[1 + MR_BUS_ADDRESS_BYTES + 1];
  mr_writer writer = {data, sizeof data, 0, false};
  mr_write_u8(&writer, MR_BUS_ASK);
  mr_write_address(&writer, &request->module);
  mr_write_u8(&writer, (uint8_t)request->wanted);
  down(coordinator, data, writer.at, now);
}

static const mr_request *find_request(const mr_request *asks, uint16_t count,
                                      const mr_bus_address *module, mr_bus_wanted wanted) {
  for (uint16_t k = 0; k < count; k++)
    if (asks[k].wanted == wanted && mr_address_equal(&asks[k].module, module)) return &asks[k];
  return NULL;
}

static void ask_missing(mr_coordinator *coordinator, double now) {
  mr_request asks[MR_BUS_MAX_ASKS];
  const double heartbeat = coordinator->links.heartbeat;
  uint16_t count = 0;
  for (int part = 0; part < 2; part++) {
    const mr_bus_wanted wanted = part ? MR_BUS_WANTED_RECORD : MR_BUS_WANTED_REPORT;
    uint16_t at = 0;
    const mr_finding *missing;
    while ((missing = next_of(&coordinator->survey, part ? MR_UNREAD : MR_UNREPORTED, &at)) &&
           count < MR_BUS_MAX_ASKS) {
      const mr_request *old =
          find_request(coordinator->asks, coordinator->ask_count, &missing->child, wanted);
      mr_request *request = &asks[count];
      if (find_request(asks, count, &missing->child, wanted)) continue; /* seen at two ports */
      count++;
      request->module = missing->child;
      request->wanted = wanted;
      request->due = old ? old->due : now + heartbeat;
      if (now >= request->due) {
        ask(coordinator, request, now);
        request->due = now + heartbeat;
      }
    }
  }
  memcpy(coordinator->asks, asks, count * sizeof *asks);
  coordinator->ask_count = count;
  if (!coordinator->ready)
    coordinator->ready = is_complete(&coordinator->survey) ||
                         now - coordinator->waiting_since >= PATIENCE * heartbeat;
}

void mr_coordinator_finish(mr_coordinator *coordinator, double now) {
  mr_node *links = &coordinator->links;
  if (!coordinator->has_input && now < coordinator->wake) return;
  coordinator->has_input = false;
  if (mr_links_is_pulse(links, now)) {
    coordinator->beat++;
    if (mr_is_open(links, PORT)) send_hello(coordinator);
    expire(coordinator, now);
  }
  links->lost = 0;
  mr_links_retry(links, now);
  if (coordinator->revision != coordinator->seen_revision ||
      links->changes != coordinator->seen_changes) {
    coordinator->seen_revision = coordinator->revision;
    coordinator->seen_changes = links->changes;
    update_survey(coordinator, now);
  }
  ask_missing(coordinator, now);
  coordinator->wake = mr_links_wake(links);
  for (uint16_t k = 0; k < coordinator->ask_count; k++)
    if (coordinator->asks[k].due < coordinator->wake) coordinator->wake = coordinator->asks[k].due;
  if (!coordinator->ready &&
      coordinator->waiting_since + PATIENCE * links->heartbeat < coordinator->wake)
    coordinator->wake = coordinator->waiting_since + PATIENCE * links->heartbeat;
}
