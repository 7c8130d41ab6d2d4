/* Links: see modurob/distributed/bus/links.py and distributed/reliable.py. Numbers of 32 bits wrap
 * around and are compared as in RFC 1982. */
#include "bus_links.h"

#include <string.h>

#define SILENCE 2.5 /* heartbeats without a hello until a neighbor counts as silent */
#define RETRIES 10.0 /* in a heartbeat, of what was not acknowledged */
#define EAGER 4U     /* retries before they become rarer */
#define HALF 0x80000000U

uint32_t mr_following(uint32_t number) { return number + 1U; }

bool mr_refuses(const mr_newest *newest, uint32_t number, double now, double lifetime) {
  uint32_t ahead = number - newest->number;
  return now - newest->at < lifetime && !(ahead > 0 && ahead < HALF);
}

uint32_t mr_port_bit(uint8_t port) { return (uint32_t)1 << port; }

bool mr_is_open(const mr_node *node, uint8_t port) {
  for (uint8_t k = 0; k < node->open; k++)
    if (node->order[k] == port) return true;
  return false;
}

/* A link that starts anew; 0 is an unknown number. */
static void start(mr_node *node, uint8_t port, uint16_t turn) {
  mr_bus_link *link = &node->links[port];
  memset(link, 0, sizeof *link);
  node->made++;
  link->here = (uint32_t)(((uint64_t)node->address.boot + node->made) % 0xffffffffU + 1U);
  link->turn = turn;
  link->presence = MR_BUS_EXPECTED;
  link->newest.at = -INFINITY;
  mr_store_remove_all_of(&node->waiting, port);
  node->changes++;
}

static void renew(mr_node *node, uint8_t port, bool silent) {
  mr_bus_address peer = node->links[port].peer;
  mr_text peer_port = node->links[port].peer_port;
  start(node, port, node->links[port].turn);
  if (silent) {
    node->links[port].presence = MR_BUS_SILENT;
    node->links[port].peer = peer;
    node->links[port].peer_port = peer_port;
  }
  node->lost |= mr_port_bit(port);
}

void mr_links_plug(mr_node *node, uint8_t port, uint16_t turn) {
  mr_links_unplug(node, port);
  node->order[node->open++] = port;
  start(node, port, turn);
}

void mr_links_unplug(mr_node *node, uint8_t port) {
  uint8_t kept = 0;
  if (!mr_is_open(node, port)) return;
  for (uint8_t k = 0; k < node->open; k++)
    if (node->order[k] != port) node->order[kept++] = node->order[k];
  node->open = kept;
  node->lost |= mr_port_bit(port);
  node->changes++;
  mr_store_remove_all_of(&node->waiting, port);
}

void mr_links_frame(mr_node *node, uint8_t port, mr_frame_kind kind, size_t size) {
  const mr_bus_link *link = &node->links[port];
  size_t whole = mr_seal_frame(node->frame, kind, link->here, link->there, size);
  node->outputs.send(node->outputs.context, port, node->frame, whole);
}

static mr_writer body(mr_node *node) {
  mr_writer writer = {node->frame + MR_BUS_FRAME_HEADER,
                      MR_BUS_MAX_FRAME - MR_BUS_FRAME_HEADER - 4, 0, false};
  return writer;
}

void mr_links_hello(mr_node *node, uint8_t port, uint64_t beat, uint32_t epoch, bool child) {
  mr_writer writer = body(node);
  mr_hello hello;
  node->links[port].hellos = mr_following(node->links[port].hellos);
  hello.address = node->address;
  hello.number = node->links[port].hellos;
  hello.beat = beat;
  hello.epoch = epoch;
  hello.child = child;
  hello.port = node->ports[port];
  mr_write_hello(&writer, &hello);
  mr_links_frame(node, port, MR_FRAME_HELLO, writer.at);
}

static void send_data(mr_node *node, const mr_stored *entry) {
  mr_writer writer = body(node);
  mr_write_u32(&writer, entry->number);
  mr_write_bytes(&writer, node->waiting.bytes + entry->offset, entry->size);
  mr_links_frame(node, entry->owner, MR_FRAME_DATA, writer.at);
}

void mr_links_post(mr_node *node, uint8_t port, const uint8_t *message, size_t size, double now) {
  mr_stored *entry = NULL;
  if (size <= MR_BUS_MAX_FRAME - MR_BUS_FRAME_HEADER - 8)
    entry = mr_store_add(&node->waiting, port, message, size);
  if (!entry) { /* not numbered: a gap in the numbers would never close */
    node->dropped++;
    return;
  }
  node->links[port].number = mr_following(node->links[port].number);
  entry->number = node->links[port].number;
  entry->tries = 1;
  entry->sent_at = now;
  send_data(node, entry);
}

/* Time when a message is to be sent again. [s] */
static double due(const mr_node *node, const mr_stored *entry) {
  double interval = node->heartbeat * (1 / RETRIES);
  for (uint32_t k = 1 + EAGER; k < entry->tries && interval < node->heartbeat; k++) interval *= 2;
  return entry->sent_at + (interval < node->heartbeat ? interval : node->heartbeat);
}

void mr_links_retry(mr_node *node, double now) {
  for (uint8_t k = 0; k < node->open; k++) {
    for (uint32_t j = 0; j < node->waiting.count; j++) {
      mr_stored *entry = &node->waiting.entries[j];
      if (entry->owner != node->order[k] || now < due(node, entry)) continue;
      entry->tries++;
      entry->sent_at = now;
      send_data(node, entry);
    }
  }
}

bool mr_links_is_pulse(mr_node *node, double now) {
  if (now < node->pulse) return false;
  node->pulse = now + node->heartbeat / MR_HELLOS;
  for (uint8_t k = 0; k < node->open; k++) {
    const mr_bus_link *link = &node->links[node->order[k]];
    bool quiet = now - link->newest.at > SILENCE * node->heartbeat;
    if (link->presence == MR_BUS_HEARD && quiet) renew(node, node->order[k], true);
  }
  return true;
}

void mr_links_pulse_with_neighbor(mr_node *node, double now) {
  if (node->pulse - now < node->heartbeat / MR_HELLOS / 2) node->pulse = now;
}

double mr_links_wake(const mr_node *node) {
  double wake = node->pulse;
  for (uint32_t k = 0; k < node->waiting.count; k++) {
    const mr_stored *entry = &node->waiting.entries[k];
    if (entry->owner != MR_GATHERED && due(node, entry) < wake) wake = due(node, entry);
  }
  return wake;
}

bool mr_links_hear(mr_node *node, uint8_t port, uint32_t theirs, const mr_hello *hello,
                   double now) {
  mr_bus_link *link = &node->links[port];
  if (link->presence != MR_BUS_HEARD) {
    link->presence = MR_BUS_HEARD;
    link->peer = hello->address;
    link->peer_port = hello->port;
    link->there = theirs;
    node->changes++;
  } else if (theirs != link->there || !mr_address_equal(&link->peer, &hello->address) ||
             !mr_text_equal(&link->peer_port, &hello->port)) {
    /* both sides count from the start only if the other one hears of a new link here */
    renew(node, port, false);
    return false;
  } else if (mr_refuses(&link->newest, hello->number, now, node->heartbeat)) {
    return false;
  }
  link->newest.number = hello->number;
  link->newest.at = now;
  link->child = hello->child;
  return true;
}

void mr_links_acknowledged(mr_node *node, uint8_t port, uint32_t number) {
  for (uint32_t k = 0; k < node->waiting.count; k++) {
    const mr_stored *entry = &node->waiting.entries[k];
    if (entry->owner == port && entry->number == number) {
      mr_store_remove(&node->waiting, k);
      return;
    }
  }
}

bool mr_links_is_far_ahead(const mr_node *node, uint8_t port, uint32_t number) {
  uint32_t ahead = number - node->links[port].low;
  return ahead > MR_BUS_WINDOW && ahead < HALF;
}

bool mr_links_is_first(mr_node *node, uint8_t port, uint32_t number) {
  mr_bus_link *link = &node->links[port];
  uint32_t *word = link->beyond + number % MR_BUS_WINDOW / 32, bit = 1U << number % 32;
  if (link->low - number < HALF || (*word & bit)) return false;
  *word |= bit;
  for (;;) {
    uint32_t next = mr_following(link->low);
    word = link->beyond + next % MR_BUS_WINDOW / 32;
    bit = 1U << next % 32;
    if (!(*word & bit)) return true;
    *word &= ~bit;
    link->low = next;
  }
}
