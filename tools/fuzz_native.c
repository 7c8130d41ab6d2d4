/* Targets of libFuzzer for everything of the bus in C that reads bytes; tools/fuzz_native.py builds
 * one program for each with -DTARGET. Bytes to read end where their memory does, so that the address
 * sanitizer finds a read beyond them. */
#include "json.h"
#include "modurob/mass.h"
#if TARGET == 7
#include "modurob/coordinator.h"
#include "records.h" /* RECORDS of modules 1 to COUNT, and their SIZES */
#endif

#include <stdlib.h>
#include <string.h>

#define FRAME 1
#define MESSAGE 2
#define DATAGRAM 3
#define NODE 4
#define JSON 5
#define MASS 6
#define COORDINATOR 7

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint32_t sink; /* so that nothing that is read is left out */

#if TARGET == FRAME
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static uint8_t room[MR_BUS_MAX_FRAME];
  const size_t around = MR_BUS_FRAME_HEADER + 4;
  mr_frame frame;
  mr_hello hello;
  mr_batch batch;
  const uint8_t *message;
  uint8_t *sealed;
  size_t length;
  sink += (uint32_t)mr_read_frame(&frame, data, size);
  if (size < 1 || size - 1 > sizeof room - around) return 0;
  sealed = room + sizeof room - around - (size - 1);
  memcpy(sealed + MR_BUS_FRAME_HEADER, data + 1, size - 1); /* the same with a right checksum */
  length = mr_seal_frame(sealed, (mr_frame_kind)(data[0] % 8), 1, 2, size - 1);
  if (mr_read_frame(&frame, sealed, length) != MR_OK) return 0;
  frame.body = memmove(room + sizeof room - frame.size, frame.body, frame.size);
  if (frame.kind == MR_FRAME_HELLO && mr_read_hello(&hello, frame.body, frame.size) == MR_OK)
    sink += hello.port.size;
  if (frame.kind == MR_FRAME_BATCH && mr_read_batch(&batch, frame.body, frame.size) == MR_OK)
    while (mr_batch_next(&batch, &message, &length))
      if (length) sink += message[0] + message[length - 1];
  return 0;
}

#elif TARGET == MESSAGE
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  mr_message message;
  mr_neighbor neighbor;
  sink += (uint32_t)mr_read_head(&message, data, size);
  if (mr_read_message(&message, data, size) != MR_OK) return 0;
  for (unsigned k = 0; k < message.neighbors; k++) mr_read_neighbor(&message.rest, &neighbor);
  if (message.rest.failed) abort(); /* it was checked as a whole */
  for (size_t k = message.rest.at; k < message.rest.size; k++) sink += message.rest.data[k];
  return 0;
}

#elif TARGET == DATAGRAM
static uint64_t last;

static uint64_t drawn(void *context) {
  (void)context;
  return ++last;
}

static void send(void *context, uint64_t address, const uint8_t *data, size_t size) {
  (void)context;
  if (address != 9 || size > MR_BUS_LARGEST_DATAGRAM) abort();
  sink += data[size - 1];
}

static void deliver(void *context, uint8_t port, const uint8_t *payload, size_t size) {
  mr_endpoint *endpoint = context;
  if (size) sink += payload[0] + payload[size - 1];
  mr_endpoint_send(endpoint, port, payload, size); /* and back */
}

/* In place of bus_hash.c, which would take nearly all of the time: reads the same bytes. */
void mr_hmac_sha256(const uint8_t *key, size_t key_size, const uint8_t *first, size_t first_size,
                    const uint8_t *second, size_t second_size, uint8_t digest[32]) {
  uint64_t sum = 14695981039346656037U;
  for (size_t k = 0; k < key_size; k++) sum = (sum ^ key[k]) * 1099511628211U;
  for (size_t k = 0; k < first_size; k++) sum = (sum ^ first[k]) * 1099511628211U;
  for (size_t k = 0; k < second_size; k++) sum = (sum ^ second[k]) * 1099511628211U;
  for (size_t k = 0; k < 32; k++) digest[k] = (uint8_t)(sum >> (8 * (k % 8)));
}

/* Plug both sides together and let them shake hands. */
static void connect(mr_endpoint *endpoint, mr_secure_link *peer) {
  static mr_text label;
  const uint8_t key[16] = {1};
  uint8_t answer[MR_SECURE_ANSWER];
  const mr_endpoint_board board = {send, deliver, drawn, endpoint};
  mr_secure_link *link = &endpoint->plugs[0].link;
  mr_opened opened;
  mr_text_set(&label, (const uint8_t *)"a", 1);
  mr_endpoint_start(endpoint, &label, 1, &board);
  mr_secure_start(peer, key, sizeof key, "in", "out", drawn, NULL);
  mr_endpoint_plug(endpoint, 0, 9, &label, key, sizeof key, "out", "in", 0);
  mr_secure_request(link, answer);
  opened = mr_secure_open(peer, answer, sizeof answer, answer);
  opened = mr_secure_open(link, answer, opened.answer, answer);
  mr_secure_open(peer, answer, opened.answer, answer);
  if (!mr_secure_is_up(link) || !mr_secure_is_up(peer)) abort();
}

/* Raw datagrams, and contents under the right key, in turns of up to 256 bytes. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static mr_endpoint endpoint;
  static mr_plug plug; /* after the handshake */
  static mr_secure_link peer, peer_before;
  static uint8_t room[512];
  if (!last) {
    connect(&endpoint, &peer);
    plug = endpoint.plugs[0];
    peer_before = peer;
  }
  endpoint.plugs[0] = plug; /* a handshake for each input would take most of the time */
  peer = peer_before;
  for (double now = 0; size >= 2; now += 1e-3) {
    const size_t length = data[1] < size - 2 ? data[1] : size - 2;
    if (data[0] % 2) {
      uint8_t *raw = room + sizeof room - length;
      memcpy(raw, data + 2, length);
      mr_endpoint_receive(&endpoint, data[0] < 8 ? 8 : 9, raw, length, now);
    } else {
      const size_t whole = 2 + MR_BUS_SECURE_HEADER + length + MR_BUS_TAG_BYTES;
      uint8_t *sealed = room + sizeof room - whole;
      memcpy(sealed, "\1a", 2);
      memcpy(sealed + 2 + MR_BUS_SECURE_HEADER, data + 2, length);
      mr_secure_seal(&peer, sealed + 2, length);
      if (data[0] & 4) sealed[2 + data[0] / 8] ^= 1; /* numbers, counter, content: forged */
      mr_endpoint_receive(&endpoint, 9, sealed, whole, now);
      if (data[0] & 64) mr_endpoint_receive(&endpoint, 9, sealed, whole, now); /* replayed */
    }
    if (data[0] & 2) mr_endpoint_flush(&endpoint);
    data += 2 + length;
    size -= 2 + length;
  }
  return 0;
}

#elif TARGET == NODE
static void send(void *context, uint8_t port, const uint8_t *frame, size_t size) {
  mr_frame read;
  const mr_node *node = context;
  if (port >= node->port_count || mr_read_frame(&read, frame, size) != MR_OK) abort();
}

static void drive(void *context, const double *torques, size_t count) {
  (void)context;
  for (size_t k = 0; k < count; k++) sink += torques[k] > 0;
}

static void stored(void *context, const uint8_t *record, size_t size) {
  (void)context;
  if (size) sink += record[size - 1];
}

/* Signals and frames with right headers, in turns of up to 256 bytes. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static mr_node node;
  static uint8_t room[512];
  mr_text ports[3];
  mr_node_settings settings;
  const mr_node_outputs outputs = {send, drive, stored, &node};
  double now = 0, values[2] = {0.1, 0.2};
  memset(&settings, 0, sizeof settings);
  for (uint8_t k = 0; k < 3; k++) {
    uint8_t letter = (uint8_t)('a' + k);
    mr_text_set(&ports[k], &letter, 1);
  }
  settings.uid[15] = 7;
  settings.boot = 1;
  settings.ports = ports;
  settings.port_count = 3;
  settings.heartbeat = 0.25;
  if (mr_node_start(&node, &settings, &outputs) != MR_OK) abort();
  for (uint8_t k = 0; k < 2; k++) {
    uint8_t plugged[] = {MR_BUS_PLUGGED, 1, (uint8_t)('a' + k), 0, 0};
    mr_node_signal(&node, plugged, sizeof plugged, now);
  }
  while (size >= 3) {
    size_t length = data[1] < size - 3 ? data[1] : size - 3;
    uint8_t port = data[0] % 4, kind = data[0] / 4 % 8;
    now += data[2] / 1024.0;
    if (data[2] % 2) mr_node_read(&node, values, data[2] % 3);
    if (kind == 0) {
      mr_node_signal(&node, data + 3, length, now);
    } else if (kind == 7) {
      mr_node_take(&node, port, data + 3, length, now);
    } else {
      uint32_t there = port < 3 ? node.links[port].here : 0;
      memcpy(room + MR_BUS_FRAME_HEADER, data + 3, length);
      mr_node_take(&node, port, room,
                   mr_seal_frame(room, (mr_frame_kind)kind, 40, there, length), now);
    }
    if (data[0] & 128) mr_node_finish(&node, now);
    data += 3 + length;
    size -= 3 + length;
  }
  mr_node_finish(&node, now);
  return 0;
}

#elif TARGET == COORDINATOR
static mr_coordinator coordinator;
static mr_bus_robot robot;
static uint32_t number; /* of messages */

static void send(void *context, uint8_t port, const uint8_t *frame, size_t size) {
  mr_frame read;
  (void)context;
  if (port != 0 || mr_read_frame(&read, frame, size) != MR_OK) abort();
}

static void take(mr_frame_kind kind, const uint8_t *body, size_t size, double now) {
  static uint8_t room[MR_BUS_LARGEST_FRAME];
  size_t whole;
  memcpy(room + MR_BUS_FRAME_HEADER, body, size);
  whole = mr_seal_frame(room, kind, 40, coordinator.links.links[0].here, size);
  mr_coordinator_take(&coordinator, room, whole, now);
}

static mr_bus_address module(uint8_t id) {
  mr_bus_address address = {{0}, 1};
  address.uid[15] = id;
  return address;
}

static mr_text label(uint8_t choice) {
  const char *labels[] = {"in", "out", "3", ""};
  mr_text text;
  mr_text_set(&text, (const uint8_t *)labels[choice % 4], strlen(labels[choice % 4]));
  return text;
}

/* A message of a module: a report of neighbors, its record or a reading, made of a few bytes. */
static void speak(uint8_t what, uint8_t id, const uint8_t *data, size_t size, double now) {
  uint8_t body[2048];
  mr_writer writer = {body, sizeof body, 0, false};
  const mr_bus_address address = module(id);
  mr_write_u32(&writer, ++number);
  mr_write_u8(&writer, (uint8_t)(MR_BUS_REPORT + what));
  mr_write_address(&writer, &address);
  if (what == 0) {
    const mr_text name = label(id);
    mr_write_u32(&writer, number);
    mr_write_text(&writer, &name);
    mr_write_u8(&writer, (uint8_t)(size / 2));
    for (size_t k = 0; k + 1 < size; k += 2) {
      mr_neighbor neighbor;
      neighbor.port = label(data[k]);
      neighbor.their_port = label(data[k] / 4);
      neighbor.turn = data[k] / 16 % 4 ? 0 : 90;
      neighbor.presence = data[k + 1] & 128 ? (mr_bus_presence)(data[k + 1] / 16 % 3) : MR_BUS_HEARD;
      neighbor.address = module(data[k + 1] % 8);
      mr_write_neighbor(&writer, &neighbor);
    }
  } else if (what == 1) {
    if (id < 1 || id > COUNT || SIZES[id - 1] > MR_BUS_CHUNK) return;
    mr_write_u32(&writer, SIZES[id - 1]);
    mr_write_u32(&writer, 0);
    mr_write_bytes(&writer, RECORDS[id - 1], SIZES[id - 1]);
  } else {
    mr_write_u32(&writer, number);
    mr_write_u32(&writer, coordinator.links.cycle.number);
    mr_write_bytes(&writer, data, size / 8 * 8);
  }
  take(MR_FRAME_DATA, body, writer.at, now);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const mr_node_outputs outputs = {send, NULL, NULL, NULL};
  const mr_bus_robot_settings settings = {{0, 0, MR_C(-9.81)}, 100, 20, MR_C(0.01)};
  const uint8_t plugged[] = {MR_BUS_PLUGGED, 3, 'o', 'u', 't', 0, 0};
  const mr_text port = label(1);
  double now = 0;
  number = 0;
  mr_bus_robot_start(&robot, &settings);
  if (mr_coordinator_start(&coordinator, 1, 1, &port, 0.25, &outputs) != MR_OK) abort();
  mr_coordinator_signal(&coordinator, plugged, sizeof plugged, now);
  while (size >= 3) {
    size_t length = data[1] % 64 < size - 3 ? data[1] % 64 : size - 3;
    uint8_t what = data[0] % 8, id = data[2] % 8;
    if (now == 0 || data[0] % 32 == 9) {
      uint8_t body[128];
      mr_writer writer = {body, sizeof body, 0, false};
      const mr_hello hello = {module(1), 1, 0, 1, true, label(0)};
      mr_write_hello(&writer, &hello);
      take(MR_FRAME_HELLO, body, writer.at, now);
    }
    now += (1 + data[1]) / 4096.0;
    if (what < 3) {
      speak(what, id, data + 3, length, now);
    } else if (what < 6) {
      take((mr_frame_kind)(what - 1), data + 3, length, now);
    } else if (what == 6) {
      mr_coordinator_signal(&coordinator, data + 3, length, now);
    } else {
      double q[MR_MAX_JOINTS];
      for (int k = 0; k < MR_MAX_JOINTS; k++) q[k] = (id - 3.0) / (1 + k);
      mr_coordinator_finish(&coordinator, now);
      mr_bus_robot_rebuild(&robot, &coordinator);
      if (data[1] & 64) mr_bus_robot_goto(&robot, q, robot.table.joint_count, id / 16.0);
      if ((data[1] & 192) == 128) mr_bus_robot_hold(&robot);
      if (data[0] == 255) mr_bus_robot_relax(&robot);
      mr_bus_robot_tick(&robot, &coordinator, now);
      sink += robot.module_count + (uint32_t)mr_bus_robot_mode(&robot);
    }
    data += 3 + length;
    size -= 3 + length;
  }
  return 0;
}

#elif TARGET == MASS
static void send(void *context, uint8_t port, const uint8_t *packet, size_t size) {
  (void)context;
  if (port > 1 || size > MR_MASS_PACKET_BYTES) abort();
  sink += packet[size - 1];
}

static uint64_t drawn(void *context, uint64_t boot, uint32_t draw) {
  (void)context;
  return boot % 3 + draw % 2; /* ties */
}

/* Packets at two ports of a module with one joint, in turns of up to 512 bytes. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static mr_mass_agent agent;
  static mr_mass_posture posture;
  const mr_mass_outputs outputs = {send, drawn, NULL};
  mr_matrix unit = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}};
  double now = 0;
  posture.ports = 2;
  posture.bodies = 2;
  posture.joints = 1;
  posture.axis[0][2] = 1;
  posture.child_bodies[0] = posture.child_ports[0] = 2;
  posture.port_body[1] = 1;
  for (uint8_t k = 0; k < 2; k++) {
    memcpy(posture.port[k], unit, sizeof unit);
    posture.body[k][3][3] = 1;
  }
  mr_mass_start(&agent, 5, &posture, &outputs);
  for (uint8_t k = 0; k < 2; k++) mr_mass_plug(&agent, k, unit);
  while (size >= 2) {
    size_t length = 2U * data[1] < size - 2 ? 2U * data[1] : size - 2;
    now += data[0] / 512.0;
    sink += (uint32_t)mr_mass_take(&agent, data[0] % 4, data + 2, length, now);
    if (data[0] & 4) mr_mass_finish(&agent, now);
    if (data[0] == 8) mr_mass_contact(&agent, NULL, 0, unit, 0);
    if (data[0] == 9) mr_mass_lift(&agent);
    data += 2 + length;
    size -= 2 + length;
  }
  mr_mass_finish(&agent, now);
  return 0;
}

#elif TARGET == JSON
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *line = malloc(size + 1), text[64];
  unsigned char bytes[64];
  const char *value;
  memcpy(line, data, size);
  line[size] = '\0';
  value = json_get(line, "a");
  sink += (uint32_t)json_text(value, text, sizeof text);
  sink += (uint32_t)json_bytes(value, bytes, sizeof bytes);
  sink += (uint32_t)json_text(json_item(value, 1), text, sizeof text);
  sink += json_get(json_item(line, 2), "b") != NULL;
  free(line);
  return 0;
}
#endif
