/* The program of a module, function by function that of modurob/distributed/bus/node.py: reports
 * itself, finds the coordinator, passes messages on. */
#include "bus_links.h"

#include <string.h>

#define STALE 20.0     /* heartbeats without a new beat until a way counts as lost */
#define LEAP 100U      /* beats within that time: a larger step is refused */
#define LIFETIME 8.0   /* heartbeats that a message may travel */
#define REFRESH 20.0   /* heartbeats after which report and reading are sent again */
#define GATHER 0.4     /* heartbeats after finding a way in which messages wait for others */
#define LATE_S 0.1     /* without a cycle until a module holds its joints by itself, ... */
#define LATE_PERIODS 50.0 /* ... and the same in periods of the loop */
#define PATIENCE 1.5      /* periods without an answer until a module sends what it has */
#define HOLD_STEP_S 2e-3  /* between its own torques then */

static void leave(mr_node *node, double now);
static void report(mr_node *node, double now);

uint8_t mr_find_label(const mr_text *labels, uint8_t count, const mr_text *label) {
  for (uint8_t k = 0; k < count; k++)
    if (mr_text_equal(&labels[k], label)) return k;
  return MR_NO_PORT;
}

mr_status mr_node_start(mr_node *node, const mr_node_settings *settings,
                        const mr_node_outputs *outputs) {
  memset(node, 0, offsetof(mr_node, routes));
  if (settings->port_count < 1 || settings->port_count > MR_BUS_MAX_PORTS ||
      settings->record_size > MR_BUS_MAX_RECORD)
    return MR_TOO_MANY;
  if (!(settings->heartbeat > 0)) return MR_BAD_ARGUMENT;
  memcpy(node->address.uid, settings->uid, sizeof node->address.uid);
  node->address.boot = settings->boot;
  node->name = settings->name;
  memcpy(node->ports, settings->ports, settings->port_count * sizeof *settings->ports);
  node->port_count = (uint8_t)settings->port_count;
  node->heartbeat = settings->heartbeat;
  node->outputs = *outputs;
  if (settings->record_size) memcpy(node->record, settings->record, settings->record_size);
  node->record_size = (uint32_t)settings->record_size;
  node->parent = MR_NO_PORT;
  node->left_at = node->torque.at = node->cycle.at = node->answered_at = -INFINITY;
  node->gather_until = -INFINITY;
  node->period = node->hold_at = INFINITY;
  mr_store_start(&node->waiting, node->waiting_entries, MR_BUS_MAX_WAITING, node->waiting_bytes,
                 sizeof node->waiting_bytes);
  mr_store_start(&node->readings, node->reading_entries, MR_BUS_MAX_MODULES, node->reading_bytes,
                 sizeof node->reading_bytes);
  mr_store_start(&node->batches, node->batch_entries, MR_BUS_MAX_BATCHES, node->batch_bytes,
                 sizeof node->batch_bytes);
  return MR_OK;
}

double mr_node_wake(const mr_node *node) { return node->wake; }

/* -- to the coordinator ---------------------------------------------------------------------------- */

static mr_writer message_writer(mr_node *node, mr_bus_kind kind) {
  mr_writer writer = {node->message, MR_BUS_MAX_FRAME - MR_BUS_FRAME_HEADER - 8, 0, false};
  mr_write_u8(&writer, (uint8_t)kind);
  mr_write_address(&writer, &node->address);
  return writer;
}

/* Send to the coordinator; soon after finding a way, together with what is to come. */
static void post_up(mr_node *node, const uint8_t *message, size_t size, double now) {
  if (node->gather_from && now < node->gather_until) {
    if (!mr_store_add(&node->waiting, MR_GATHERED, message, size)) node->dropped++;
  } else if (node->parent != MR_NO_PORT) {
    mr_links_post(node, node->parent, message, size, now);
  }
}

static void up(mr_node *node, const mr_writer *writer, double now) {
  if (writer->failed) {
    node->dropped++;
  } else {
    post_up(node, writer->data, writer->at, now);
  }
}

/* Send what has waited for the modules further out, so that it fills few datagrams. */
static void send_gathered(mr_node *node, double now) {
  if (node->parent == MR_NO_PORT || (node->gather_from && now < node->gather_until)) return;
  for (uint32_t k = 0, left = node->waiting.count; left > 0; left--) {
    mr_stored entry = node->waiting.entries[k];
    if (entry.owner != MR_GATHERED) {
      k++;
      continue;
    }
    memcpy(node->message, node->waiting.bytes + entry.offset, entry.size);
    mr_store_remove(&node->waiting, k);
    mr_links_post(node, node->parent, node->message, entry.size, now);
  }
}

static mr_writer sense(mr_node *node) {
  mr_writer writer = message_writer(node, MR_BUS_SENSE);
  node->senses = mr_following(node->senses);
  mr_write_u32(&writer, node->senses);
  mr_write_u32(&writer, node->cycle.number);
  for (uint8_t k = 0; k < node->values.count; k++) mr_write_f64(&writer, node->values.at[k]);
  return writer;
}

static void send_sense(mr_node *node, double now) {
  mr_writer writer = sense(node);
  up(node, &writer, now);
}

static bool is_before(const mr_text *a, const mr_text *b) {
  int sign = memcmp(a->bytes, b->bytes, a->size < b->size ? a->size : b->size);
  return sign < 0 || (sign == 0 && a->size < b->size);
}

/* Send the module's name and neighbors, these in the order of their ports' labels. */
static void report(mr_node *node, double now) {
  mr_writer writer = message_writer(node, MR_BUS_REPORT);
  uint32_t left = 0;
  node->has_reported = true;
  node->reported = node->changes;
  node->reports = mr_following(node->reports);
  mr_write_u32(&writer, node->reports);
  mr_write_text(&writer, &node->name);
  mr_write_u8(&writer, node->open);
  for (uint8_t k = 0; k < node->open; k++) left |= mr_port_bit(node->order[k]);
  while (left) {
    uint8_t next = MR_NO_PORT;
    mr_neighbor neighbor;
    for (uint8_t port = 0; port < node->port_count; port++)
      if ((left & mr_port_bit(port)) &&
          (next == MR_NO_PORT || is_before(&node->ports[port], &node->ports[next])))
        next = port;
    left &= ~mr_port_bit(next);
    neighbor.port = node->ports[next];
    neighbor.address = node->links[next].peer;
    neighbor.their_port = node->links[next].peer_port;
    neighbor.turn = node->links[next].turn;
    neighbor.presence = node->links[next].presence;
    mr_write_neighbor(&writer, &neighbor);
  }
  up(node, &writer, now);
}

static void send_all(mr_node *node, double now) {
  node->refresh = now + REFRESH * node->heartbeat;
  report(node, now);
  if (node->values.known) send_sense(node, now);
}

static void send_record(mr_node *node, double now) {
  uint32_t offset = 0;
  do {
    mr_writer writer = message_writer(node, MR_BUS_RECORD);
    uint32_t size = node->record_size - offset;
    if (size > MR_BUS_CHUNK) size = MR_BUS_CHUNK;
    mr_write_u32(&writer, node->record_size);
    mr_write_u32(&writer, offset);
    mr_write_bytes(&writer, node->record + offset, size);
    up(node, &writer, now);
    offset += MR_BUS_CHUNK;
  } while (offset < node->record_size);
}

/* -- hellos and the tree --------------------------------------------------------------------------- */

static void send_hello(mr_node *node, uint8_t port) {
  uint64_t beat = node->parent == MR_NO_PORT ? 0 : node->beat;
  mr_links_hello(node, port, beat, node->epoch, port == node->parent);
}

static void send_hellos(mr_node *node) {
  for (uint8_t k = 0; k < node->open; k++) send_hello(node, node->order[k]);
}

static void join(mr_node *node, uint8_t port, const mr_hello *hello, double now) {
  node->parent = port;
  node->parent_epoch = hello->epoch;
  node->beat = hello->beat;
  node->beat_at = now;
  node->epoch = mr_following(node->epoch);
  node->torque.at = node->cycle.at = -INFINITY;
  node->gather_from = 0;
  for (uint8_t k = 0; k < node->open; k++)
    if (node->order[k] != port && node->links[node->order[k]].presence == MR_BUS_HEARD)
      node->gather_from |= mr_port_bit(node->order[k]);
  node->gather_until = now + GATHER * node->heartbeat;
  send_hellos(node);
  send_all(node, now);
  if (!node->record_sent) {
    node->record_sent = true;
    send_record(node, now);
  }
}

static void hear(mr_node *node, uint8_t port, const mr_hello *hello, double now) {
  bool fresh;
  if (hello->number == 1 || node->links[port].hellos == 0)
    send_hello(node, port); /* a new neighbor should not wait for the next pulse */
  if (port == node->parent) {
    if (hello->beat == 0 || hello->child || hello->epoch != node->parent_epoch) {
      leave(node, now);
    } else if (hello->beat > node->beat && hello->beat - node->beat <= LEAP) {
      node->beat = hello->beat;
      node->beat_at = now;
      mr_links_pulse_with_neighbor(node, now);
    }
  } else if (hello->beat && !hello->child) { /* its messages take another way */
    node->gather_from &= ~mr_port_bit(port);
  }
  /* an older beat may come from beyond here, until all that held it have let go of it */
  fresh = hello->beat > node->beat || now - node->left_at > STALE * node->heartbeat;
  if (node->parent == MR_NO_PORT && hello->beat && fresh && !hello->child)
    join(node, port, hello, now);
}

static void drive(mr_node *node, const double *torques, size_t count) {
  node->outputs.drive(node->outputs.context, torques, count);
}

/* Give up the way to the coordinator, and inform the neighbors. The motors hold the joints if they
 * can do so alone; else, and when the connector has opened, they let go. */
static void leave(mr_node *node, double now) {
  bool opened = !mr_is_open(node, node->parent);
  node->parent = MR_NO_PORT;
  node->left_at = now;
  node->route_count = 0;
  node->readings.count = node->readings.used = 0;
  node->awaited = 0;
  mr_store_remove_all_of(&node->waiting, MR_GATHERED);
  if (node->torques.known && (opened || node->gain_count == 0)) {
    node->torques.known = false;
    node->held.count = 0;
    node->hold_at = INFINITY;
    drive(node, NULL, 0);
  }
  send_hellos(node);
}

/* Drop the ways over neighbors that are gone. */
static void drop_lost(mr_node *node, double now) {
  uint32_t kept = 0, lost = node->lost;
  if (!lost) return;
  node->lost = 0;
  node->gather_from &= ~lost;
  for (uint32_t k = 0; k < node->route_count; k++)
    if (!(lost & mr_port_bit(node->routes[k].port))) node->routes[kept++] = node->routes[k];
  node->route_count = kept;
  if (node->parent != MR_NO_PORT && (lost & mr_port_bit(node->parent))) leave(node, now);
}

/* -- motors ----------------------------------------------------------------------------------------- */

/* Time after which cycles do not come any more. [s] */
static double late_at(const mr_node *node) {
  double periods = node->period < INFINITY ? LATE_PERIODS * node->period : 0;
  return node->cycle.at + (periods > LATE_S ? periods : LATE_S);
}

/* Hold the joints when torques that came in every cycle do not come any more. */
static void hold(mr_node *node, double now) {
  double late = late_at(node), torques[2 * MR_BUS_MAX_JOINTS];
  uint8_t count = node->torques.count, joints = node->values.count / 2;
  bool unclocked = node->parent != MR_NO_PORT && late == -INFINITY && node->held.count == 0;
  if (!node->torques.known || node->gain_count == 0 || !node->values.known) {
    node->hold_at = INFINITY;
    return;
  }
  if (now < late || unclocked) {
    node->hold_at = unclocked ? INFINITY : late;
    return;
  }
  if (count > node->gain_count / 3) count = node->gain_count / 3;
  if (count > joints) count = joints;
  if (node->held.count == 0) { /* from now on at rest: no torque against friction */
    node->held.count = (uint8_t)((node->values.count + 1) / 2);
    for (uint8_t k = 0; k < node->held.count; k++) node->held.at[k] = node->values.at[2 * k];
    node->torques.count = count;
    for (uint8_t k = 0; k < count; k++)
      node->torques.at[k] = node->torques.at[k] - node->gains[3 * k + 2] * node->values.at[2 * k + 1];
    node->hold_at = now;
  }
  if (now >= node->hold_at) {
    if (count > node->held.count) count = node->held.count;
    for (uint8_t k = 0; k < count; k++) {
      double stretch = node->held.at[k] - node->values.at[2 * k];
      torques[k] = node->torques.at[k] + node->gains[3 * k] * stretch -
                   node->gains[3 * k + 1] * node->values.at[2 * k + 1];
    }
    drive(node, torques, count);
    node->hold_at = now + HOLD_STEP_S;
  }
}

/* -- commands of the coordinator ------------------------------------------------------------------- */

static bool read_numbers(mr_message *message, double *values, size_t room, uint8_t *count) {
  if (message->rest.size / 8 > room) return false;
  *count = (uint8_t)(message->rest.size / 8);
  for (uint8_t k = 0; k < *count; k++) values[k] = mr_read_f64(&message->rest);
  return true;
}

/* Take in a piece of a new record; once it is whole it replaces the old one. */
static void write_piece(mr_node *node, const mr_message *message, double now) {
  if (!mr_pieces_join(node->written, node->pieces, message)) return;
  memcpy(node->record, node->written, message->total);
  node->record_size = message->total;
  node->outputs.stored(node->outputs.context, node->record, node->record_size);
  send_record(node, now);
}

static void handle(mr_node *node, const uint8_t *data, size_t size, double now) {
  mr_message message;
  double values[3 * MR_BUS_MAX_JOINTS];
  uint8_t count = 0;
  bool numbers = false;
  mr_status status = mr_read_message(&message, data, size);
  if (status == MR_OK && (message.kind == MR_BUS_TORQUE || message.kind == MR_BUS_HOLD)) {
    numbers = true;
    if (!read_numbers(&message, values,
                      message.kind == MR_BUS_HOLD ? 3 * MR_BUS_MAX_JOINTS : 2 * MR_BUS_MAX_JOINTS,
                      &count))
      status = MR_TOO_MANY;
  }
  if (status != MR_OK) {
    node->ignored++;
  } else if (message.kind == MR_BUS_HOLD) {
    node->gain_count = count;
    memcpy(node->gains, values, count * sizeof *values);
  } else if (numbers) {
    if (mr_refuses(&node->torque, message.number, now, LIFETIME * node->heartbeat)) return;
    node->torque.number = message.number;
    node->torque.at = now;
    node->torques.known = count > 0;
    node->torques.count = count;
    memcpy(node->torques.at, values, count * sizeof *values);
    node->held.count = 0;
    drive(node, values, count);
  } else if (message.kind == MR_BUS_WRITE) {
    write_piece(node, &message, now);
  } else if (message.wanted == MR_BUS_WANTED_REPORT) {
    report(node, now);
  } else {
    send_record(node, now);
  }
}

/* -- messages of others ---------------------------------------------------------------------------- */

/* Remember the port towards a module further out, the newest last. */
static void learn(mr_node *node, const mr_bus_address *address, uint8_t port) {
  uint32_t k = 0;
  while (k < node->route_count && !mr_address_equal(&node->routes[k].address, address)) k++;
  if (k == node->route_count && node->route_count == MR_BUS_MAX_MODULES) k = 0; /* the oldest */
  if (k < node->route_count) {
    memmove(&node->routes[k], &node->routes[k + 1],
            (node->route_count - k - 1) * sizeof *node->routes);
    node->route_count--;
  }
  node->routes[node->route_count].address = *address;
  node->routes[node->route_count++].port = port;
}

static uint8_t route(const mr_node *node, const mr_bus_address *address) {
  for (uint32_t k = node->route_count; k > 0; k--)
    if (mr_address_equal(&node->routes[k - 1].address, address)) return node->routes[k - 1].port;
  return MR_NO_PORT;
}

static bool is_from_coordinator(mr_bus_kind kind) {
  return kind >= MR_BUS_ASK && kind <= MR_BUS_WRITE;
}

/* Pass a message on: to the coordinator, or from there to the module that it names. */
static void pass_on(mr_node *node, uint8_t port, const uint8_t *message, size_t size, double now) {
  mr_message head;
  uint8_t way;
  if (mr_read_head(&head, message, size) != MR_OK) {
    node->ignored++;
    return;
  }
  if (node->parent == MR_NO_PORT || is_from_coordinator(head.kind) != (port == node->parent))
    return;
  if (!is_from_coordinator(head.kind)) {
    learn(node, &head.address, port);
    post_up(node, message, size, now);
    node->gather_from &= ~mr_port_bit(port); /* it has sent all that it gathered */
  } else if (mr_address_equal(&head.address, &node->address)) {
    handle(node, message, size, now);
  } else {
    way = route(node, &head.address);
    if (way != MR_NO_PORT) mr_links_post(node, way, message, size, now);
  }
}

/* -- cycles of the clocked loop -------------------------------------------------------------------- */

/* Keep a reading; false without room. */
static bool keep_reading(mr_node *node, const uint8_t *message, size_t size) {
  for (uint32_t k = 0; k < node->readings.count; k++) {
    const uint8_t *old = node->readings.bytes + node->readings.entries[k].offset;
    if (memcmp(old + 1, message + 1, MR_BUS_ADDRESS_BYTES) == 0)
      return mr_store_replace(&node->readings, k, message, size);
  }
  return mr_store_add(&node->readings, 0, message, size) != NULL;
}

/* Send the readings of this module and of those further out towards the coordinator. */
static void answer(mr_node *node, double now) {
  mr_batch_writer batch;
  if (node->parent == MR_NO_PORT) return;
  if (node->values.known) {
    mr_writer own = sense(node);
    if (!keep_reading(node, own.data, own.at)) node->dropped++;
  }
  batch.port = node->parent;
  mr_batch_begin(node, &batch);
  for (uint32_t k = 0; k < node->readings.count; k++) {
    const mr_stored *entry = &node->readings.entries[k];
    mr_batch_add(node, &batch, node->readings.bytes + entry->offset, entry->size);
  }
  mr_batch_end(node, &batch, true);
  node->readings.count = node->readings.used = 0;
  node->answered_at = now;
}

/* Take this module's torque and send the others on, to all modules further out. */
static void send_out(mr_node *node, mr_batch messages, double now) {
  const uint8_t *message;
  size_t size;
  mr_message head;
  mr_batch again = messages;
  while (mr_batch_next(&again, &message, &size))
    if (mr_read_head(&head, message, size) == MR_OK && head.kind == MR_BUS_TORQUE &&
        mr_address_equal(&head.address, &node->address))
      handle(node, message, size, now);
  node->awaited = 0;
  for (uint8_t k = 0; k < node->open; k++) {
    mr_batch_writer batch;
    batch.port = node->order[k];
    if (batch.port == node->parent || !node->links[batch.port].child) continue;
    node->awaited |= mr_port_bit(batch.port);
    mr_batch_begin(node, &batch);
    again = messages;
    while (mr_batch_next(&again, &message, &size))
      if (mr_read_head(&head, message, size) == MR_OK && head.kind == MR_BUS_TORQUE &&
          !mr_address_equal(&head.address, &node->address) &&
          route(node, &head.address) == batch.port)
        mr_batch_add(node, &batch, message, size);
    mr_batch_end(node, &batch, true);
  }
}

static void collect(mr_node *node, uint8_t port, mr_batch messages) {
  const uint8_t *message;
  size_t size;
  mr_message head;
  mr_batch again = messages;
  while (mr_batch_next(&again, &message, &size)) {
    if (mr_read_head(&head, message, size) != MR_OK || head.kind != MR_BUS_SENSE) continue;
    if (keep_reading(node, message, size)) {
      learn(node, &head.address, port);
    } else {
      node->dropped++;
    }
  }
  if (messages.complete && messages.number == node->cycle.number)
    node->awaited &= ~mr_port_bit(port);
}

/* Take this module's torque from a batch and pass on the rest; collect readings back. */
static void cycle(mr_node *node, uint8_t port, mr_batch batch, double now) {
  const uint8_t *message;
  size_t size;
  mr_message head;
  mr_batch again = batch;
  while (mr_batch_next(&again, &message, &size)) {
    if (mr_read_head(&head, message, size) != MR_OK) {
      node->ignored++;
      return;
    }
  }
  if (port == node->parent) {
    uint32_t steps = batch.number - node->cycle.number;
    if (steps && mr_refuses(&node->cycle, batch.number, now, LIFETIME * node->heartbeat)) return;
    if (steps) node->period = (now - node->cycle.at) / steps; /* infinite after a pause */
    node->cycle.number = batch.number;
    node->cycle.at = now;
    send_out(node, batch, now);
  } else if (node->parent != MR_NO_PORT && mr_is_open(node, port)) {
    collect(node, port, batch);
  }
  if (!node->awaited) answer(node, now);
}

/* Keep a batch until the end of the step: a late module takes the newest cycle of a port only. */
static void keep_batch(mr_node *node, uint8_t port, const uint8_t *body, size_t size,
                       uint32_t number) {
  uint8_t known = 0;
  mr_stored *entry;
  for (uint32_t k = node->batches.count; k > 0; k--)
    if (node->batches.entries[k - 1].owner == port && node->batches.entries[k - 1].number != number)
      mr_store_remove(&node->batches, k - 1);
  entry = mr_store_add(&node->batches, port, body, size);
  if (!entry) {
    node->dropped++;
    return;
  }
  entry->number = number;
  while (known < node->cycle_port_count && node->cycle_ports[known] != port) known++;
  if (known == node->cycle_port_count) node->cycle_ports[node->cycle_port_count++] = port;
}

static void take_cycles(mr_node *node, double now) {
  for (uint8_t k = 0; k < node->cycle_port_count; k++) {
    for (uint32_t j = 0; j < node->batches.count; j++) {
      const mr_stored *entry = &node->batches.entries[j];
      mr_batch batch;
      if (entry->owner != node->cycle_ports[k]) continue;
      if (mr_read_batch(&batch, node->batches.bytes + entry->offset, entry->size) == MR_OK)
        cycle(node, entry->owner, batch, now);
    }
  }
  node->batches.count = node->batches.used = 0;
  node->cycle_port_count = 0;
}

/* -- a step ------------------------------------------------------------------------------------------ */

void mr_node_read(mr_node *node, const double *values, size_t count) {
  if (count > 2 * MR_BUS_MAX_JOINTS) count = 0;
  node->values.known = count > 0;
  node->values.count = (uint8_t)count;
  if (count) memcpy(node->values.at, values, count * sizeof *values);
}

void mr_node_take(mr_node *node, uint8_t port, const uint8_t *data, size_t size, double now) {
  mr_arrival arrival;
  node->has_input = true;
  mr_links_take(node, port, data, size, now, &arrival);
  drop_lost(node, now);
  if (arrival.kind == MR_FRAME_HELLO) {
    hear(node, port, &arrival.hello, now);
  } else if (arrival.kind == MR_FRAME_BATCH) {
    keep_batch(node, port, arrival.data, arrival.size, arrival.batch.number);
  } else if (arrival.kind == MR_FRAME_DATA) {
    pass_on(node, port, arrival.data, arrival.size, now);
  }
}

void mr_node_signal(mr_node *node, const uint8_t *signal, size_t size, double now) {
  mr_message message;
  uint8_t port;
  node->has_input = true;
  if (mr_read_message(&message, signal, size) != MR_OK) {
    node->ignored++;
    return;
  }
  port = mr_find_label(node->ports, node->port_count, &message.name);
  if (message.kind == MR_BUS_PLUGGED && port != MR_NO_PORT) {
    mr_links_plug(node, port, message.turn);
    send_hello(node, port);
  } else if (message.kind == MR_BUS_UNPLUGGED && port != MR_NO_PORT) {
    mr_links_unplug(node, port);
  } else if (message.kind == MR_BUS_SENSED &&
             read_numbers(&message, node->values.at, 2 * MR_BUS_MAX_JOINTS, &node->values.count)) {
    node->values.known = true;
    if (node->parent != MR_NO_PORT) send_sense(node, now);
  } else {
    node->ignored++;
  }
  drop_lost(node, now);
}

void mr_node_finish(mr_node *node, double now) {
  double due, wake;
  if (!node->has_input && now < node->wake) return;
  node->has_input = false;
  take_cycles(node, now);
  if (mr_links_is_pulse(node, now)) {
    drop_lost(node, now);
    if (node->parent != MR_NO_PORT && now - node->beat_at > STALE * node->heartbeat)
      leave(node, now);
    send_hellos(node);
    if (node->parent != MR_NO_PORT && now >= node->refresh) send_all(node, now);
  }
  send_gathered(node, now);
  mr_links_retry(node, now);
  if (node->parent != MR_NO_PORT && (!node->has_reported || node->reported != node->changes))
    report(node, now);
  hold(node, now);
  due = node->period < INFINITY ? node->answered_at + PATIENCE * node->period : INFINITY;
  if (due <= now && now < late_at(node)) { /* a cycle or an answer to it was lost */
    answer(node, now);
    due = now + PATIENCE * node->period;
  }
  wake = mr_links_wake(node);
  if (node->hold_at < wake) wake = node->hold_at;
  if (due > now && due < wake) wake = due;
  for (uint32_t k = 0; k < node->waiting.count; k++)
    if (node->waiting.entries[k].owner == MR_GATHERED && node->gather_until < wake)
      wake = node->gather_until;
  node->wake = wake;
}
