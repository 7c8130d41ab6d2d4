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

/* Take in a hello; false if it is an old one, or that of another neighbor than before. */
static bool hear(mr_node *node, uint8_t port, uint32_t theirs, const mr_hello *hello, double now) {
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

static void acknowledged(mr_node *node, uint8_t port, uint32_t number) {
  for (uint32_t k = 0; k < node->waiting.count; k++) {
    const mr_stored *entry = &node->waiting.entries[k];
    if (entry->owner == port && entry->number == number) {
      mr_store_remove(&node->waiting, k);
      return;
    }
  }
}

/* Whether a number may not be taken now, because it is too far ahead. */
static bool is_far_ahead(const mr_node *node, uint8_t port, uint32_t number) {
  uint32_t ahead = number - node->links[port].low;
  return ahead > MR_BUS_WINDOW && ahead < HALF;
}

/* Whether a number comes in for the first time; it is recorded. */
static bool is_first(mr_node *node, uint8_t port, uint32_t number) {
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

void mr_links_take(mr_node *node, uint8_t port, const uint8_t *data, size_t size, double now,
                   mr_arrival *arrival) {
  mr_frame frame;
  mr_bus_link *link;
  mr_reader reader;
  bool understood = true;
  arrival->kind = (mr_frame_kind)0;
  if (mr_read_frame(&frame, data, size) != MR_OK) {
    node->ignored++;
    return;
  }
  if (port >= node->port_count || !mr_is_open(node, port)) return;
  link = &node->links[port];
  if (frame.there != 0 && frame.there != link->here) return; /* for a link that is no more */
  reader = (mr_reader){frame.body, frame.size, 0, false};
  arrival->data = frame.body;
  arrival->size = frame.size;
  if (frame.kind == MR_FRAME_HELLO) {
    understood = mr_read_hello(&arrival->hello, frame.body, frame.size) == MR_OK;
    if (understood && hear(node, port, frame.here, &arrival->hello, now))
      arrival->kind = MR_FRAME_HELLO;
  } else if (link->presence != MR_BUS_HEARD || frame.here != link->there ||
             frame.there != link->here) {
    return;
  } else if (frame.kind == MR_FRAME_ACK) {
    understood = frame.size % 4 == 0;
    while (understood && reader.at < reader.size)
      acknowledged(node, port, mr_read_u32(&reader));
  } else if (frame.kind == MR_FRAME_BATCH) {
    understood = mr_read_batch(&arrival->batch, frame.body, frame.size) == MR_OK;
    if (understood) arrival->kind = MR_FRAME_BATCH;
  } else {
    uint32_t number = mr_read_u32(&reader);
    understood = !reader.failed && !is_far_ahead(node, port, number);
    if (understood) {
      mr_writer ack = {node->frame + MR_BUS_FRAME_HEADER, 4, 0, false};
      mr_write_u32(&ack, number);
      mr_links_frame(node, port, MR_FRAME_ACK, ack.at);
      if (is_first(node, port, number)) arrival->kind = MR_FRAME_DATA;
      arrival->data += 4;
      arrival->size -= 4;
    }
  }
  if (!understood) node->ignored++;
}

/* -- batches ----------------------------------------------------------------------------------------- */

#define BATCH_HEADER 6U

void mr_batch_begin(mr_node *node, mr_batch_writer *batch) {
  batch->body = (mr_writer){node->frame + MR_BUS_FRAME_HEADER,
                            MR_BUS_MAX_FRAME - MR_BUS_FRAME_HEADER - 4, 0, false};
  batch->count = 0;
  mr_write_u32(&batch->body, node->cycle.number);
  mr_write_u16(&batch->body, 0); /* complete and count, see mr_batch_end */
}

void mr_batch_end(mr_node *node, mr_batch_writer *batch, bool complete) {
  batch->body.data[BATCH_HEADER - 2] = complete;
  batch->body.data[BATCH_HEADER - 1] = batch->count;
  mr_links_frame(node, batch->port, MR_FRAME_BATCH, batch->body.at);
}

void mr_batch_add(mr_node *node, mr_batch_writer *batch, const uint8_t *message, size_t size) {
  if (size + 2 > batch->body.size - batch->body.at || batch->count == 255) {
    mr_batch_end(node, batch, false);
    mr_batch_begin(node, batch);
  }
  mr_write_u16(&batch->body, (uint16_t)size);
  mr_write_bytes(&batch->body, message, size);
  batch->count++;
}

/* -- records ----------------------------------------------------------------------------------------- */

bool mr_pieces_join(uint8_t record[MR_BUS_MAX_RECORD], uint16_t sizes[MR_BUS_MAX_PIECES],
                    const mr_message *message) {
  size_t size = message->rest.size, found = 0, at = message->offset / MR_BUS_CHUNK;
  if (message->total > MR_BUS_MAX_RECORD || size > MR_BUS_CHUNK ||
      message->offset % MR_BUS_CHUNK || message->offset > message->total ||
      size > message->total - message->offset)
    return false;
  for (size_t k = 0; k < MR_BUS_MAX_PIECES; k++)
    if (k * MR_BUS_CHUNK + sizes[k] > message->total) sizes[k] = 0;
  if (size) memcpy(record + message->offset, message->rest.data, size);
  if (at < MR_BUS_MAX_PIECES) sizes[at] = (uint16_t)size;
  for (size_t k = 0; k < MR_BUS_MAX_PIECES; k++) found += sizes[k];
  if (found != message->total) return false;
  memset(sizes, 0, MR_BUS_MAX_PIECES * sizeof *sizes);
  return true;
}
