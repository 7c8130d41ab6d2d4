/* Flat functions around the bus in C, for tests that call them with ctypes. */
#include "modurob/bus.h"

#include <string.h>

static uint8_t *room_; /* for outputs: a byte with the port (254 drive, 255 stored), u32 size, bytes */
static size_t used_, limit_;
static uint64_t numbers_; /* of the next draw */

static void put(uint8_t port, const void *data, size_t size) {
  mr_writer writer = {room_, limit_, used_, false};
  mr_write_u8(&writer, port);
  mr_write_u32(&writer, (uint32_t)size);
  mr_write_bytes(&writer, data, size);
  used_ = writer.failed ? limit_ + 1 : writer.at;
}

void outputs_to(uint8_t *room, size_t limit) {
  room_ = room;
  limit_ = limit;
  used_ = 0;
}

size_t outputs_size(void) { return used_; }

static void on_send(void *context, uint8_t port, const uint8_t *frame, size_t size) {
  (void)context;
  put(port, frame, size);
}

static void on_drive(void *context, const double *torques, size_t count) {
  (void)context;
  put(254, torques, 8 * count);
}

static void on_stored(void *context, const uint8_t *record, size_t size) {
  (void)context;
  put(255, record, size);
}

static mr_text text(const char *bytes) {
  mr_text found;
  mr_text_set(&found, (const uint8_t *)bytes, strlen(bytes));
  return found;
}

size_t node_size(void) { return sizeof(mr_node); }

int node_start(mr_node *node, const uint8_t *uid, uint32_t boot, const uint8_t *record, size_t size,
               const char *name, const char *const *ports, size_t count, double heartbeat) {
  const mr_node_outputs outputs = {on_send, on_drive, on_stored, NULL};
  mr_text labels[MR_BUS_MAX_PORTS];
  mr_node_settings settings;
  memset(&settings, 0, sizeof settings);
  memcpy(settings.uid, uid, 16);
  for (size_t k = 0; k < count && k < MR_BUS_MAX_PORTS; k++) labels[k] = text(ports[k]);
  settings.boot = boot;
  settings.record = record;
  settings.record_size = size;
  settings.name = text(name);
  settings.ports = labels;
  settings.port_count = count;
  settings.heartbeat = heartbeat;
  return mr_node_start(node, &settings, &outputs);
}

uint32_t node_ignored(const mr_node *node) { return node->ignored; }
uint32_t node_dropped(const mr_node *node) { return node->dropped; }

/* Read a message and write it again from its fields; a negative status if it is none. */
long message_again(const uint8_t *data, size_t size, uint8_t *room, size_t limit) {
  mr_message message;
  mr_writer writer = {room, limit, 0, false};
  mr_status status = mr_read_message(&message, data, size);
  if (status != MR_OK) return status;
  mr_write_u8(&writer, (uint8_t)message.kind);
  if (message.kind < MR_BUS_PLUGGED) mr_write_address(&writer, &message.address);
  switch (message.kind) {
    case MR_BUS_REPORT:
      mr_write_u32(&writer, message.number);
      mr_write_text(&writer, &message.name);
      mr_write_u8(&writer, message.neighbors);
      for (unsigned k = 0; k < message.neighbors; k++) {
        mr_neighbor neighbor;
        mr_read_neighbor(&message.rest, &neighbor);
        mr_write_neighbor(&writer, &neighbor);
      }
      break;
    case MR_BUS_RECORD:
    case MR_BUS_WRITE:
      mr_write_u32(&writer, message.total);
      mr_write_u32(&writer, message.offset);
      mr_write_bytes(&writer, message.rest.data, message.rest.size);
      break;
    case MR_BUS_SENSE:
    case MR_BUS_TORQUE:
      mr_write_u32(&writer, message.number);
      if (message.kind == MR_BUS_SENSE) mr_write_u32(&writer, message.cycle); /* fall through */
    case MR_BUS_HOLD:
    case MR_BUS_SENSED:
    case MR_BUS_DRIVE:
      while (message.rest.at < message.rest.size)
        mr_write_f64(&writer, mr_read_f64(&message.rest));
      break;
    case MR_BUS_ASK:
      mr_write_u8(&writer, (uint8_t)message.wanted);
      break;
    case MR_BUS_PLUGGED:
      mr_write_text(&writer, &message.name);
      mr_write_u16(&writer, message.turn);
      break;
    case MR_BUS_UNPLUGGED:
      mr_write_text(&writer, &message.name);
      break;
    case MR_BUS_STORED:
      mr_write_bytes(&writer, message.rest.data, message.rest.size);
      break;
  }
  return writer.failed ? MR_TOO_MANY : (long)writer.at;
}

/* The same for a whole frame and what is in it. */
long frame_again(const uint8_t *data, size_t size, uint8_t *room, size_t limit) {
  mr_frame frame;
  mr_hello hello;
  mr_batch batch;
  mr_writer writer = {room + MR_BUS_FRAME_HEADER, limit - MR_BUS_FRAME_HEADER - 4, 0, false};
  mr_reader reader;
  const uint8_t *message;
  size_t length;
  mr_status status = mr_read_frame(&frame, data, size);
  if (status != MR_OK) return status;
  reader = (mr_reader){frame.body, frame.size, 0, false};
  switch (frame.kind) {
    case MR_FRAME_HELLO:
      status = mr_read_hello(&hello, frame.body, frame.size);
      if (status != MR_OK) return status;
      mr_write_hello(&writer, &hello);
      break;
    case MR_FRAME_BATCH:
      status = mr_read_batch(&batch, frame.body, frame.size);
      if (status != MR_OK) return status;
      mr_write_u32(&writer, batch.number);
      mr_write_u8(&writer, batch.complete);
      mr_write_u8(&writer, batch.count);
      while (mr_batch_next(&batch, &message, &length)) {
        mr_write_u16(&writer, (uint16_t)length);
        mr_write_bytes(&writer, message, length);
      }
      break;
    case MR_FRAME_ACK:
      while (!reader.failed && reader.at < reader.size)
        mr_write_u32(&writer, mr_read_u32(&reader));
      if (reader.failed) return MR_TOO_SHORT;
      break;
    case MR_FRAME_DATA:
      mr_write_bytes(&writer, frame.body, frame.size);
      break;
  }
  return (long)mr_seal_frame(room, frame.kind, frame.here, frame.there, writer.at);
}

/* A secured link with numbers that count up from the seed. */
static uint64_t counted(void *context) {
  (void)context;
  return numbers_++;
}

size_t link_size(void) { return sizeof(mr_secure_link); }

void link_start(mr_secure_link *link, const uint8_t *key, size_t size, const char *out,
                const char *in, uint64_t seed) {
  numbers_ = seed;
  mr_secure_start(link, key, size, out, in, counted, NULL);
}

size_t link_seal(mr_secure_link *link, const uint8_t *content, size_t size, uint8_t *room) {
  memcpy(room + MR_BUS_SECURE_HEADER, content, size);
  return mr_secure_seal(link, room, size);
}

/* The refusal; content to `content` and answer to `answer`, with their sizes. */
int link_open(mr_secure_link *link, const uint8_t *data, size_t size, uint8_t *content,
              long *content_size, uint8_t *answer, size_t *answer_size) {
  mr_opened opened = mr_secure_open(link, data, size, answer);
  *content_size = opened.content ? (long)opened.size : -1;
  if (opened.content) memcpy(content, opened.content, opened.size);
  *answer_size = opened.answer;
  return (int)opened.refusal;
}

/* An endpoint of ports a and b with one link each; datagrams go to the outputs. */
static void on_datagram(void *context, uint64_t address, const uint8_t *data, size_t size) {
  (void)context;
  put((uint8_t)address, data, size);
}

static void on_payload(void *context, uint8_t port, const uint8_t *payload, size_t size) {
  (void)context;
  put((uint8_t)(100 + port), payload, size);
}

size_t endpoint_size(void) { return sizeof(mr_endpoint); }

void endpoint_start(mr_endpoint *endpoint, uint64_t seed) {
  static mr_text labels[2];
  const mr_endpoint_board board = {on_datagram, on_payload, counted, NULL};
  labels[0] = text("a");
  labels[1] = text("b");
  numbers_ = seed;
  mr_endpoint_start(endpoint, labels, 2, &board);
}

void endpoint_plug(mr_endpoint *endpoint, uint8_t port, uint64_t address, const char *label,
                   const uint8_t *key, size_t size, const char *out, const char *in, double now) {
  mr_text theirs = text(label);
  mr_endpoint_plug(endpoint, port, address, &theirs, key, size, out, in, now);
}
