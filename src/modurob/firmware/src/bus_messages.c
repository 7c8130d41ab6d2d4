/* Frames and messages of the bus: bounds are checked in the readers and writers of numbers, and
 * every message is checked as a whole before any of it is used. */
#include "modurob/bus.h"
#include "modurob/crc.h"

#include <string.h>

/* -- numbers and texts -------------------------------------------------------------------------- */

static const uint8_t *taken(mr_reader *reader, size_t size) {
  if (reader->failed || reader->size - reader->at < size) {
    reader->failed = true;
    return NULL;
  }
  reader->at += size;
  return reader->data + reader->at - size;
}

static uint64_t read_little(mr_reader *reader, size_t size) {
  const uint8_t *data = taken(reader, size);
  uint64_t value = 0;
  for (size_t k = 0; data && k < size; k++) value |= (uint64_t)data[k] << (8 * k);
  return value;
}

uint8_t mr_read_u8(mr_reader *reader) { return (uint8_t)read_little(reader, 1); }

uint16_t mr_read_u16(mr_reader *reader) { return (uint16_t)read_little(reader, 2); }

uint32_t mr_read_u32(mr_reader *reader) { return (uint32_t)read_little(reader, 4); }

uint64_t mr_read_u64(mr_reader *reader) { return read_little(reader, 8); }

double mr_read_f64(mr_reader *reader) {
  uint64_t bits = read_little(reader, 8);
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* Bytes of the character at the begin of UTF-8, as in RFC 3629; 0 if it is none. */
static size_t character(const uint8_t *bytes, size_t size) {
  uint8_t lead = bytes[0], low = 0x80, high = 0xbf; /* bounds of the second byte */
  size_t length;
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (length > size) return 0;
  if (lead == 0xe0) low = 0xa0;
  if (lead == 0xed) high = 0x9f; /* no surrogates */
  if (lead == 0xf0) low = 0x90;
  if (lead == 0xf4) high = 0x8f;
  if (bytes[1] < low || bytes[1] > high) return 0;
  for (size_t k = 2; k < length; k++)
    if ((bytes[k] & 0xc0) != 0x80) return 0;
  return length;
}

mr_status mr_text_set(mr_text *text, const uint8_t *bytes, size_t size) {
  memset(text, 0, sizeof *text);
  if (size > MR_BUS_LARGEST_TEXT) return MR_TOO_MANY;
  for (size_t at = 0; at < size;) {
    size_t step = character(bytes + at, size - at);
    if (step == 0) return MR_BAD_FIELD;
    at += step;
  }
  if (size) memcpy(text->bytes, bytes, size);
  text->size = (uint8_t)size;
  return MR_OK;
}

void mr_read_text(mr_reader *reader, mr_text *text) {
  uint8_t size = mr_read_u8(reader);
  const uint8_t *bytes = taken(reader, size);
  if (!bytes) size = 0;
  if (mr_text_set(text, bytes, size) != MR_OK) reader->failed = true;
}

void mr_read_address(mr_reader *reader, mr_bus_address *address) {
  const uint8_t *uid = taken(reader, sizeof address->uid);
  memset(address, 0, sizeof *address);
  if (uid) memcpy(address->uid, uid, sizeof address->uid);
  address->boot = mr_read_u32(reader);
}

void mr_read_neighbor(mr_reader *reader, mr_neighbor *neighbor) {
  uint8_t presence;
  mr_read_text(reader, &neighbor->port);
  mr_read_address(reader, &neighbor->address);
  mr_read_text(reader, &neighbor->their_port);
  neighbor->turn = mr_read_u16(reader);
  presence = mr_read_u8(reader);
  if (presence > MR_BUS_SILENT) reader->failed = true;
  neighbor->presence = presence == 0   ? MR_BUS_HEARD
                       : presence == 1 ? MR_BUS_EXPECTED
                                       : MR_BUS_SILENT;
}

void mr_write_bytes(mr_writer *writer, const uint8_t *data, size_t size) {
  if (writer->failed || writer->size - writer->at < size) {
    writer->failed = true;
    return;
  }
  if (size) memcpy(writer->data + writer->at, data, size);
  writer->at += size;
}

static void write_little(mr_writer *writer, uint64_t value, size_t size) {
  uint8_t data[8];
  for (size_t k = 0; k < size; k++) data[k] = (uint8_t)(value >> (8 * k));
  mr_write_bytes(writer, data, size);
}

void mr_write_u8(mr_writer *writer, uint8_t value) { write_little(writer, value, 1); }

void mr_write_u16(mr_writer *writer, uint16_t value) { write_little(writer, value, 2); }

void mr_write_u32(mr_writer *writer, uint32_t value) { write_little(writer, value, 4); }

void mr_write_u64(mr_writer *writer, uint64_t value) { write_little(writer, value, 8); }

void mr_write_f64(mr_writer *writer, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  write_little(writer, bits, 8);
}

void mr_write_text(mr_writer *writer, const mr_text *text) {
  mr_write_u8(writer, text->size);
  mr_write_bytes(writer, text->bytes, text->size);
}

void mr_write_address(mr_writer *writer, const mr_bus_address *address) {
  mr_write_bytes(writer, address->uid, sizeof address->uid);
  mr_write_u32(writer, address->boot);
}

void mr_write_neighbor(mr_writer *writer, const mr_neighbor *neighbor) {
  mr_write_text(writer, &neighbor->port);
  mr_write_address(writer, &neighbor->address);
  mr_write_text(writer, &neighbor->their_port);
  mr_write_u16(writer, neighbor->turn);
  mr_write_u8(writer, (uint8_t)neighbor->presence);
}

bool mr_address_equal(const mr_bus_address *a, const mr_bus_address *b) {
  return a->boot == b->boot && memcmp(a->uid, b->uid, sizeof a->uid) == 0;
}

bool mr_text_equal(const mr_text *a, const mr_text *b) {
  return a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0;
}

/* -- frames ---------------------------------------------------------------------------------------- */

static mr_reader reader_of(const uint8_t *data, size_t size) {
  mr_reader reader = {data, size, 0, false};
  return reader;
}

/* MR_OK if a value was read and nothing is left. */
static mr_status ended(const mr_reader *reader) {
  if (reader->failed) return MR_TOO_SHORT;
  return reader->at == reader->size ? MR_OK : MR_BAD_LENGTH;
}

mr_status mr_read_frame(mr_frame *frame, const uint8_t *data, size_t size) {
  mr_reader reader, sum;
  uint8_t kind;
  memset(frame, 0, sizeof *frame);
  if (size < MR_BUS_FRAME_HEADER + 4 || size > MR_BUS_MAX_FRAME) return MR_BAD_LENGTH;
  if (data[0] != 'M' || data[1] != 'B') return MR_BAD_FIELD;
  if (data[2] != MR_BUS_VERSION) return MR_NEWER_VERSION;
  sum = reader_of(data + size - 4, 4);
  if (mr_crc32(0, data, size - 4) != mr_read_u32(&sum)) return MR_BAD_SUM;
  kind = data[3];
  if (kind < MR_FRAME_HELLO || kind > MR_FRAME_BATCH) return MR_BAD_FIELD;
  reader = reader_of(data + 4, 8);
  frame->kind = (mr_frame_kind)kind;
  frame->here = mr_read_u32(&reader);
  frame->there = mr_read_u32(&reader);
  frame->body = data + MR_BUS_FRAME_HEADER;
  frame->size = size - MR_BUS_FRAME_HEADER - 4;
  return MR_OK;
}

size_t mr_seal_frame(uint8_t *data, mr_frame_kind kind, uint32_t here, uint32_t there,
                     size_t size) {
  const uint8_t start[] = {'M', 'B', MR_BUS_VERSION, (uint8_t)kind};
  mr_writer writer = {data, MR_BUS_FRAME_HEADER + size + 4, 0, false};
  mr_write_bytes(&writer, start, sizeof start);
  mr_write_u32(&writer, here);
  mr_write_u32(&writer, there);
  writer.at += size;
  mr_write_u32(&writer, mr_crc32(0, data, writer.at));
  return writer.at;
}

mr_status mr_read_hello(mr_hello *hello, const uint8_t *body, size_t size) {
  mr_reader reader = reader_of(body, size);
  mr_read_address(&reader, &hello->address);
  hello->number = mr_read_u32(&reader);
  hello->beat = mr_read_u64(&reader);
  hello->epoch = mr_read_u32(&reader);
  hello->child = mr_read_u8(&reader) != 0;
  mr_read_text(&reader, &hello->port);
  return ended(&reader);
}

void mr_write_hello(mr_writer *writer, const mr_hello *hello) {
  mr_write_address(writer, &hello->address);
  mr_write_u32(writer, hello->number);
  mr_write_u64(writer, hello->beat);
  mr_write_u32(writer, hello->epoch);
  mr_write_u8(writer, hello->child);
  mr_write_text(writer, &hello->port);
}

mr_status mr_read_batch(mr_batch *batch, const uint8_t *body, size_t size) {
  mr_reader reader = reader_of(body, size);
  batch->number = mr_read_u32(&reader);
  batch->complete = mr_read_u8(&reader) != 0;
  batch->count = mr_read_u8(&reader);
  batch->messages = reader;
  for (unsigned k = 0; k < batch->count; k++) taken(&reader, mr_read_u16(&reader));
  return ended(&reader);
}

bool mr_batch_next(mr_batch *batch, const uint8_t **message, size_t *size) {
  if (batch->messages.at == batch->messages.size) return false;
  *size = mr_read_u16(&batch->messages);
  *message = taken(&batch->messages, *size);
  return true;
}

/* -- messages -------------------------------------------------------------------------------------- */

static bool is_kind(uint8_t code) {
  return (code >= MR_BUS_REPORT && code <= MR_BUS_SENSE) ||
         (code >= MR_BUS_ASK && code <= MR_BUS_WRITE) ||
         (code >= MR_BUS_PLUGGED && code <= MR_BUS_STORED);
}

mr_status mr_read_head(mr_message *message, const uint8_t *data, size_t size) {
  mr_reader reader = reader_of(data, size);
  uint8_t code = mr_read_u8(&reader);
  memset(message, 0, sizeof *message);
  mr_read_address(&reader, &message->address);
  if (reader.failed) return MR_TOO_SHORT;
  if (!is_kind(code)) return MR_BAD_FIELD;
  message->kind = (mr_bus_kind)code;
  return MR_OK;
}

static mr_status numbers(mr_message *message, const mr_reader *reader) {
  message->rest = reader_of(reader->data + reader->at, reader->size - reader->at);
  return message->rest.size % 8 ? MR_BAD_LENGTH : MR_OK;
}

mr_status mr_read_message(mr_message *message, const uint8_t *data, size_t size) {
  mr_reader reader = reader_of(data, size);
  uint8_t code = mr_read_u8(&reader), wanted;
  memset(message, 0, sizeof *message);
  if (!is_kind(code)) return reader.failed ? MR_TOO_SHORT : MR_BAD_FIELD;
  message->kind = (mr_bus_kind)code;
  if (code < MR_BUS_PLUGGED) mr_read_address(&reader, &message->address);
  switch (message->kind) {
    case MR_BUS_REPORT:
      message->number = mr_read_u32(&reader);
      mr_read_text(&reader, &message->name);
      message->neighbors = mr_read_u8(&reader);
      message->rest = reader;
      for (unsigned k = 0; k < message->neighbors; k++) {
        mr_neighbor neighbor;
        mr_read_neighbor(&reader, &neighbor);
      }
      break;
    case MR_BUS_RECORD:
    case MR_BUS_WRITE:
      message->total = mr_read_u32(&reader);
      message->offset = mr_read_u32(&reader);
      if (reader.failed) return MR_TOO_SHORT;
      message->rest = reader_of(data + reader.at, size - reader.at);
      return MR_OK;
    case MR_BUS_SENSE:
    case MR_BUS_TORQUE:
      message->number = mr_read_u32(&reader);
      if (message->kind == MR_BUS_SENSE) message->cycle = mr_read_u32(&reader);
      return reader.failed ? MR_TOO_SHORT : numbers(message, &reader);
    case MR_BUS_HOLD:
      return reader.failed ? MR_TOO_SHORT : numbers(message, &reader);
    case MR_BUS_ASK:
      wanted = mr_read_u8(&reader);
      if (wanted != MR_BUS_WANTED_REPORT && wanted != MR_BUS_WANTED_RECORD) return MR_BAD_FIELD;
      message->wanted = (mr_bus_wanted)wanted;
      break;
    case MR_BUS_PLUGGED:
      mr_read_text(&reader, &message->name);
      message->turn = mr_read_u16(&reader);
      break;
    case MR_BUS_UNPLUGGED:
      mr_read_text(&reader, &message->name);
      break;
    case MR_BUS_SENSED:
    case MR_BUS_DRIVE:
      return numbers(message, &reader);
    default: /* STORED */
      message->rest = reader_of(data + reader.at, size - reader.at);
      return MR_OK;
  }
  return ended(&reader);
}
