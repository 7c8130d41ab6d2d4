/* The module bus in fixed memory: the bytes of docs/guide/bus.md, and the program of a module.
 *
 * From the wire to the program: `mr_endpoint` takes datagrams apart and authenticates them
 * (`mr_secure_link`), `mr_node` reads the frames in them and makes new ones. Both call functions of
 * the board (`mr_endpoint_board`, `mr_node_outputs`) and nothing of an operating system. All times
 * are seconds of one clock that never goes back; numbers on the wire are little endian.
 */
#ifndef MODUROB_BUS_H
#define MODUROB_BUS_H

#include "modurob/config.h"

#include <stdbool.h>

/* Of the protocol: the same in every module. */
#define MR_BUS_VERSION 2
#define MR_BUS_LARGEST_TEXT 64
#define MR_BUS_LARGEST_FRAME 4096
#define MR_BUS_CHUNK 1024 /* bytes of a record in one message */
#define MR_BUS_FRAME_HEADER 12
#define MR_BUS_ADDRESS_BYTES 20
#define MR_BUS_SECURE_HEADER 24
#define MR_BUS_TAG_BYTES 16
#define MR_BUS_LEAST_KEY 16
#define MR_BUS_COUNTER_WINDOW 1024 /* newest counters of a link, each of which is taken once */

/* Of this module. The defaults are for a small board. */
#ifndef MR_BUS_MAX_PORTS /* at most 16 */
#define MR_BUS_MAX_PORTS 6
#endif
#ifndef MR_BUS_MAX_JOINTS /* of this module */
#define MR_BUS_MAX_JOINTS 8
#endif
#ifndef MR_BUS_MAX_FRAME /* larger frames are ignored; 1152 is the least that carries records */
#define MR_BUS_MAX_FRAME MR_BUS_LARGEST_FRAME
#endif
#ifndef MR_BUS_MAX_RECORD /* bytes of this module's memory */
#define MR_BUS_MAX_RECORD 2048
#endif
#ifndef MR_BUS_MAX_MODULES /* that this module passes messages on for */
#define MR_BUS_MAX_MODULES MR_MAX_MODULES
#endif
#ifndef MR_BUS_MAX_WAITING /* messages without an acknowledgment, of all links together */
#define MR_BUS_MAX_WAITING (4 * MR_BUS_MAX_MODULES)
#endif
#ifndef MR_BUS_WAITING_BYTES
#define MR_BUS_WAITING_BYTES 8192
#endif
#ifndef MR_BUS_READING_BYTES /* of the readings of one cycle */
#define MR_BUS_READING_BYTES (64 * MR_BUS_MAX_MODULES)
#endif
#ifndef MR_BUS_MAX_BATCHES /* frames of one cycle that arrive together */
#define MR_BUS_MAX_BATCHES (2 * MR_BUS_MAX_PORTS)
#endif
#ifndef MR_BUS_BATCH_BYTES
#define MR_BUS_BATCH_BYTES (2 * MR_BUS_MAX_FRAME)
#endif
#ifndef MR_BUS_WINDOW /* numbers beyond the first missing one that are taken; a power of two */
#define MR_BUS_WINDOW 256
#endif
#ifndef MR_BUS_MAX_UNSENT /* payloads that wait for the handshake of their link */
#define MR_BUS_MAX_UNSENT 16
#endif
#ifndef MR_BUS_MOST_PER_S /* payloads from one neighbor */
#define MR_BUS_MOST_PER_S 20000
#endif

#if MR_BUS_MAX_PORTS > 16 || MR_BUS_MAX_FRAME > MR_BUS_LARGEST_FRAME || MR_BUS_MAX_FRAME < 1152
#error "MR_BUS_MAX_PORTS is at most 16, MR_BUS_MAX_FRAME from 1152 to 4096"
#endif
#if MR_BUS_WINDOW < 32 || (MR_BUS_WINDOW & (MR_BUS_WINDOW - 1)) || MR_BUS_MAX_JOINTS > 80
#error "MR_BUS_WINDOW is a power of two from 32 on, MR_BUS_MAX_JOINTS at most 80"
#endif

#define MR_BUS_MAX_PIECES ((MR_BUS_MAX_RECORD + MR_BUS_CHUNK - 1) / MR_BUS_CHUNK)

/* -- hashes: bus_hash.c ----------------------------------------------------------------------- */

typedef struct mr_sha256 {
  uint32_t state[8];
  uint64_t size; /* bytes so far */
  uint8_t block[64];
} mr_sha256;

void mr_sha256_start(mr_sha256 *hash);
void mr_sha256_add(mr_sha256 *hash, const uint8_t *data, size_t size);
void mr_sha256_end(mr_sha256 *hash, uint8_t digest[32]);

/* HMAC-SHA256 (RFC 2104) of two pieces of a message, one after the other. */
void mr_hmac_sha256(const uint8_t *key, size_t key_size, const uint8_t *first, size_t first_size,
                    const uint8_t *second, size_t second_size, uint8_t digest[32]);

/* -- bytes: bus_messages.c --------------------------------------------------------------------- */

/* A place in bytes that are read. `failed` stays set once something did not fit. */
typedef struct mr_reader {
  const uint8_t *data;
  size_t size, at;
  bool failed;
} mr_reader;

/* A place in bytes that are written. `failed` stays set once the room was too small. */
typedef struct mr_writer {
  uint8_t *data;
  size_t size, at;
  bool failed;
} mr_writer;

typedef struct mr_text {
  uint8_t size;
  uint8_t bytes[MR_BUS_LARGEST_TEXT];
} mr_text;

/* A module's id, most significant byte first, and a number drawn when it was switched on. */
typedef struct mr_bus_address {
  uint8_t uid[16];
  uint32_t boot;
} mr_bus_address;

typedef enum mr_frame_kind {
  MR_FRAME_HELLO = 1,
  MR_FRAME_DATA = 2,
  MR_FRAME_ACK = 3,
  MR_FRAME_BATCH = 4
} mr_frame_kind;

typedef enum mr_bus_kind {
  MR_BUS_REPORT = 0x10,
  MR_BUS_RECORD = 0x11,
  MR_BUS_SENSE = 0x12,
  MR_BUS_ASK = 0x20,
  MR_BUS_TORQUE = 0x21,
  MR_BUS_HOLD = 0x22,
  MR_BUS_WRITE = 0x23,
  MR_BUS_PLUGGED = 0x30,
  MR_BUS_UNPLUGGED = 0x31,
  MR_BUS_SENSED = 0x32,
  MR_BUS_DRIVE = 0x33,
  MR_BUS_STORED = 0x34
} mr_bus_kind;

typedef enum mr_bus_wanted { MR_BUS_WANTED_REPORT = 1, MR_BUS_WANTED_RECORD = 2 } mr_bus_wanted;

/* Of a neighbor whose connector is closed. */
typedef enum mr_bus_presence {
  MR_BUS_HEARD = 0,
  MR_BUS_EXPECTED = 1, /* not heard yet */
  MR_BUS_SILENT = 2    /* heard before */
} mr_bus_presence;

typedef struct mr_frame {
  mr_frame_kind kind;
  uint32_t here, there; /* numbers of the link on the sender's and on the receiver's side */
  const uint8_t *body;
  size_t size;
} mr_frame;

typedef struct mr_hello {
  mr_bus_address address;
  uint32_t number;
  uint64_t beat;
  uint32_t epoch;
  bool child;
  mr_text port;
} mr_hello;

typedef struct mr_neighbor {
  mr_text port;
  mr_bus_address address;
  mr_text their_port;
  uint16_t turn; /* [deg] */
  mr_bus_presence presence;
} mr_neighbor;

typedef struct mr_batch {
  uint32_t number;
  bool complete;
  uint8_t count;
  mr_reader messages; /* of `mr_batch_next` */
} mr_batch;

/* A message; fields that its kind does not have are zero. */
typedef struct mr_message {
  mr_bus_kind kind;
  mr_bus_address address; /* of its origin, or of its target */
  uint32_t number;        /* REPORT, SENSE, TORQUE */
  uint32_t cycle;         /* SENSE: the newest that the module had, 0 before the first */
  mr_bus_wanted wanted;   /* ASK */
  uint32_t total, offset; /* RECORD, WRITE */
  mr_text name;           /* REPORT; the port of PLUGGED, UNPLUGGED */
  uint16_t turn;          /* PLUGGED [deg] */
  uint8_t neighbors;      /* REPORT: count, to be read from `rest` with mr_read_neighbor */
  mr_reader rest;         /* neighbors, bytes of a record, or numbers of 8 bytes */
} mr_message;

uint8_t mr_read_u8(mr_reader *reader);
uint16_t mr_read_u16(mr_reader *reader);
uint32_t mr_read_u32(mr_reader *reader);
uint64_t mr_read_u64(mr_reader *reader);
double mr_read_f64(mr_reader *reader);
void mr_read_text(mr_reader *reader, mr_text *text);
void mr_read_address(mr_reader *reader, mr_bus_address *address);
void mr_read_neighbor(mr_reader *reader, mr_neighbor *neighbor);
void mr_write_u8(mr_writer *writer, uint8_t value);
void mr_write_u16(mr_writer *writer, uint16_t value);
void mr_write_u32(mr_writer *writer, uint32_t value);
void mr_write_u64(mr_writer *writer, uint64_t value);
void mr_write_f64(mr_writer *writer, double value);
void mr_write_bytes(mr_writer *writer, const uint8_t *data, size_t size);
void mr_write_text(mr_writer *writer, const mr_text *text);
void mr_write_address(mr_writer *writer, const mr_bus_address *address);
void mr_write_neighbor(mr_writer *writer, const mr_neighbor *neighbor);

bool mr_address_equal(const mr_bus_address *a, const mr_bus_address *b);
bool mr_text_equal(const mr_text *a, const mr_text *b);
/* A text of UTF-8 bytes: MR_TOO_MANY beyond 64 of them, MR_BAD_FIELD if they are not UTF-8. */
mr_status mr_text_set(mr_text *text, const uint8_t *bytes, size_t size);

mr_status mr_read_frame(mr_frame *frame, const uint8_t *data, size_t size);
/* Write header and checksum around a body of `size` bytes that stands at data + MR_BUS_FRAME_HEADER;
 * returns the size of the frame. */
size_t mr_seal_frame(uint8_t *data, mr_frame_kind kind, uint32_t here, uint32_t there, size_t size);
mr_status mr_read_hello(mr_hello *hello, const uint8_t *body, size_t size);
void mr_write_hello(mr_writer *writer, const mr_hello *hello);
/* Check a batch as a whole; then `mr_batch_next` gives its messages one by one. */
mr_status mr_read_batch(mr_batch *batch, const uint8_t *body, size_t size);
bool mr_batch_next(mr_batch *batch, const uint8_t **message, size_t *size);
/* Kind and address of a message: all that a router reads. */
mr_status mr_read_head(mr_message *message, const uint8_t *data, size_t size);
/* A message, or a signal within a module, in full. */
mr_status mr_read_message(mr_message *message, const uint8_t *data, size_t size);

/* -- secured datagrams: bus_secure.c ------------------------------------------------------------ */

/* Draw a number; never 0, and not to be guessed by others. */
typedef uint64_t (*mr_random)(void *context);

/* One side of a link: see modurob/distributed/transports/secure.py for the handshake. */
typedef struct mr_secure_link {
  uint8_t outward[32], inward[32]; /* keys of both directions */
  uint64_t offer, here, there;     /* numbers; 0 before the handshake */
  uint64_t sent, newest;           /* counters */
  uint32_t seen[MR_BUS_COUNTER_WINDOW / 32];
  mr_random random;
  void *context;
} mr_secure_link;

typedef enum mr_refusal {
  MR_ACCEPTED,
  MR_REFUSED_OVERSIZED,
  MR_REFUSED_GARBAGE,
  MR_REFUSED_STRANGER, /* not plugged into that port */
  MR_REFUSED_FORGED,   /* not made with the key for this link */
  MR_REFUSED_REPLAYED
} mr_refusal;

/* Result of opening a datagram. */
typedef struct mr_opened {
  mr_refusal refusal;
  const uint8_t *content; /* NULL without one */
  size_t size;
  size_t answer; /* bytes of a datagram to answer with; 0 without one */
} mr_opened;

#define MR_SECURE_ANSWER (MR_BUS_SECURE_HEADER + MR_BUS_TAG_BYTES)

/* `out` and `in` are the texts of both ends, sender first, for the two directions. */
void mr_secure_start(mr_secure_link *link, const uint8_t *key, size_t key_size, const char *out,
                     const char *in, mr_random random, void *context);
bool mr_secure_is_up(const mr_secure_link *link);
/* Write a datagram that asks the neighbor for its number: MR_SECURE_ANSWER bytes. */
void mr_secure_request(const mr_secure_link *link, uint8_t *data);
/* Write header and tag around a content of `size` bytes at data + MR_BUS_SECURE_HEADER; returns the
 * size of the datagram. */
size_t mr_secure_seal(mr_secure_link *link, uint8_t *data, size_t size);
/* Open a datagram; `answer` has room for MR_SECURE_ANSWER bytes. */
mr_opened mr_secure_open(mr_secure_link *link, const uint8_t *data, size_t size, uint8_t *answer);

/* -- the socket of a module: bus_endpoint.c ------------------------------------------------------ */

#define MR_BUS_LARGEST_CONTENT (2 + MR_BUS_LARGEST_FRAME)
#define MR_BUS_LARGEST_LABEL MR_BUS_LARGEST_TEXT
#define MR_BUS_LARGEST_DATAGRAM                                                                    \
  (1 + MR_BUS_LARGEST_LABEL + MR_BUS_SECURE_HEADER + MR_BUS_LARGEST_CONTENT + MR_BUS_TAG_BYTES)
#define MR_BUS_CONTENT (2 + MR_BUS_MAX_FRAME) /* bytes that leave in one datagram */

/* Functions of the board. */
typedef struct mr_endpoint_board {
  void (*send)(void *context, uint64_t address, const uint8_t *data, size_t size);
  void (*deliver)(void *context, uint8_t port, const uint8_t *payload, size_t size);
  mr_random random;
  void *context;
} mr_endpoint_board;

typedef struct mr_plug {
  bool plugged;
  uint64_t address; /* of the neighbor's socket, as the board numbers it */
  mr_text label;    /* of the neighbor's port */
  mr_secure_link link;
  double left, at;  /* payloads that may still come in now [1], and when that was counted [s] */
  uint16_t unsent;  /* payloads that wait in `data` */
  size_t size;      /* bytes of them */
  uint8_t data[1 + MR_BUS_LARGEST_LABEL + MR_BUS_SECURE_HEADER + MR_BUS_CONTENT + MR_BUS_TAG_BYTES];
} mr_plug;

typedef struct mr_endpoint {
  const mr_text *labels; /* of this module's ports */
  uint8_t ports;
  mr_endpoint_board board;
  mr_plug plugs[MR_BUS_MAX_PORTS];
} mr_endpoint;

void mr_endpoint_start(mr_endpoint *endpoint, const mr_text *labels, uint8_t ports,
                       const mr_endpoint_board *board);
/* Connect a port; `out` and `in` are the texts of both ends, see mr_secure_start. */
void mr_endpoint_plug(mr_endpoint *endpoint, uint8_t port, uint64_t address, const mr_text *label,
                      const uint8_t *key, size_t key_size, const char *out, const char *in,
                      double now);
void mr_endpoint_unplug(mr_endpoint *endpoint, uint8_t port);
/* Put a payload into the next datagram of a port; a full datagram leaves. */
void mr_endpoint_send(mr_endpoint *endpoint, uint8_t port, const uint8_t *payload, size_t size);
/* Send what is left: at the end of every step. */
void mr_endpoint_flush(mr_endpoint *endpoint);
/* Take a datagram apart and deliver its payloads. */
mr_refusal mr_endpoint_receive(mr_endpoint *endpoint, uint64_t source, const uint8_t *data,
                               size_t size, double now);

/* -- messages in memory: bus_store.c -------------------------------------------------------------- */

typedef struct mr_stored {
  double sent_at; /* [s] */
  uint32_t number, tries, offset;
  uint16_t size;
  uint8_t owner; /* a port, or MR_GATHERED */
} mr_stored;

/* Messages of any size in their order, in memory of the caller. */
typedef struct mr_store {
  mr_stored *entries;
  uint8_t *bytes;
  uint32_t max_entries, max_bytes, count, used;
} mr_store;

void mr_store_start(mr_store *store, mr_stored *entries, uint32_t max_entries, uint8_t *bytes,
                    uint32_t max_bytes);
/* The new entry at the end; NULL without room. */
mr_stored *mr_store_add(mr_store *store, uint8_t owner, const uint8_t *data, size_t size);
/* Put other bytes in the place of an entry's; false without room. */
bool mr_store_replace(mr_store *store, uint32_t index, const uint8_t *data, size_t size);
void mr_store_remove(mr_store *store, uint32_t index);
void mr_store_remove_all_of(mr_store *store, uint8_t owner);

/* -- the program of a module: bus_node.c ---------------------------------------------------------- */

#define MR_NO_PORT 255
#define MR_GATHERED 254

/* Functions of the board. */
typedef struct mr_node_outputs {
  void (*send)(void *context, uint8_t port, const uint8_t *frame, size_t size);
  /* Set the torques of the motors; none let them go. [N m, N] */
  void (*drive)(void *context, const double *torques, size_t count);
  /* Keep a new record. */
  void (*stored)(void *context, const uint8_t *record, size_t size);
  void *context;
} mr_node_outputs;

/* Number of the newest message taken from a stream, and when that was. */
typedef struct mr_newest {
  uint32_t number;
  double at; /* [s] */
} mr_newest;

typedef struct mr_bus_link {
  bool child; /* the neighbor's way to the coordinator leads over here */
  mr_bus_presence presence;
  mr_bus_address peer;
  mr_text peer_port;
  uint16_t turn;        /* [deg] */
  uint32_t here, there; /* numbers of both ends, 0 while unknown */
  uint32_t number;      /* of the last message posted */
  uint32_t hellos;      /* number of the last one sent */
  mr_newest newest;     /* hello of the neighbor */
  uint32_t low;         /* the numbers up to here have been taken, ... */
  uint32_t beyond[MR_BUS_WINDOW / 32]; /* ... and these, by number modulo the window */
} mr_bus_link;

typedef struct mr_route {
  mr_bus_address address;
  uint8_t port;
} mr_route;

typedef struct mr_values {
  bool known;
  uint8_t count;
  double at[2 * MR_BUS_MAX_JOINTS];
} mr_values;

/* State of a module. It has pointers into itself: do not copy it. */
typedef struct mr_node {
  mr_bus_address address;
  mr_text name;
  mr_text ports[MR_BUS_MAX_PORTS];
  uint8_t port_count;
  double heartbeat; /* [s] */
  mr_node_outputs outputs;

  mr_bus_link links[MR_BUS_MAX_PORTS];
  uint8_t order[MR_BUS_MAX_PORTS]; /* closed connectors, oldest first */
  uint8_t open;                    /* count of them */
  uint32_t lost;                   /* bits of ports whose neighbor went or was replaced */
  uint32_t made, changes;
  uint32_t ignored; /* frames and messages that were not understood */
  uint32_t dropped; /* messages without room */
  double pulse;     /* [s] time of the next hello */

  uint8_t parent; /* the port towards the coordinator, or MR_NO_PORT */
  uint32_t parent_epoch;
  uint64_t beat; /* the coordinator's newest one */
  double beat_at, left_at;
  uint32_t epoch, reports, senses;
  uint32_t reported; /* `changes` at the last report */
  bool has_reported, record_sent;
  double refresh;
  mr_newest torque, cycle;
  double period, answered_at;
  uint32_t awaited, gather_from; /* bits of ports */
  double gather_until;
  mr_values values;  /* q, v of the joints */
  mr_values torques; /* if commanded */
  mr_values held;    /* q while this module holds its joints by itself */
  uint8_t gain_count;
  double gains[3 * MR_BUS_MAX_JOINTS];
  double hold_at, wake;
  bool has_input; /* since the last step */

  uint32_t route_count, record_size;
  uint16_t pieces[MR_BUS_MAX_PIECES]; /* bytes written of each */
  mr_store waiting, readings, batches;
  uint8_t cycle_ports[MR_BUS_MAX_PORTS]; /* that batches came from in this step */
  uint8_t cycle_port_count;

  mr_route routes[MR_BUS_MAX_MODULES]; /* newest last; from here on nothing is set at the start */
  mr_stored waiting_entries[MR_BUS_MAX_WAITING], reading_entries[MR_BUS_MAX_MODULES],
      batch_entries[MR_BUS_MAX_BATCHES];
  uint8_t record[MR_BUS_MAX_RECORD], written[MR_BUS_MAX_RECORD];
  uint8_t waiting_bytes[MR_BUS_WAITING_BYTES], reading_bytes[MR_BUS_READING_BYTES],
      batch_bytes[MR_BUS_BATCH_BYTES];
  uint8_t frame[MR_BUS_MAX_FRAME], message[MR_BUS_MAX_FRAME]; /* the one that is being made */
} mr_node;

typedef struct mr_node_settings {
  uint8_t uid[16];
  uint32_t boot; /* a random number */
  const uint8_t *record;
  size_t record_size;
  mr_text name;
  const mr_text *ports;
  size_t port_count;
  double heartbeat; /* [s] */
} mr_node_settings;

mr_status mr_node_start(mr_node *node, const mr_node_settings *settings,
                        const mr_node_outputs *outputs);
/* A step: the joints' reading, then what came in, then `mr_node_finish`. */
void mr_node_read(mr_node *node, const double *values, size_t count); /* none: not measured */
void mr_node_take(mr_node *node, uint8_t port, const uint8_t *frame, size_t size, double now);
/* A signal of the module's own connectors or joints: PLUGGED, UNPLUGGED, SENSED. */
void mr_node_signal(mr_node *node, const uint8_t *signal, size_t size, double now);
void mr_node_finish(mr_node *node, double now);
/* Time when the next step is due if nothing comes in. [s] */
double mr_node_wake(const mr_node *node);
/* The port of a label, or MR_NO_PORT. */
uint8_t mr_find_label(const mr_text *labels, uint8_t count, const mr_text *label);

#endif
