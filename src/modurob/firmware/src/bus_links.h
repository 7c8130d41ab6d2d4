/* A module's links to its neighbors, for bus_node.c and coordinator.c alone: hellos, and messages
 * that are repeated until they arrive. */
#ifndef MODUROB_BUS_LINKS_H
#define MODUROB_BUS_LINKS_H

#include "modurob/bus.h"

#define MR_HELLOS 5.0 /* in a heartbeat */

uint32_t mr_following(uint32_t number);
/* Whether a message was overtaken; none travels longer than its lifetime. [s] */
bool mr_refuses(const mr_newest *newest, uint32_t number, double now, double lifetime);
uint32_t mr_port_bit(uint8_t port);
bool mr_is_open(const mr_node *node, uint8_t port);

void mr_links_plug(mr_node *node, uint8_t port, uint16_t turn);
void mr_links_unplug(mr_node *node, uint8_t port);
/* Send the body of `size` bytes that stands in node->frame after the header. */
void mr_links_frame(mr_node *node, uint8_t port, mr_frame_kind kind, size_t size);
void mr_links_hello(mr_node *node, uint8_t port, uint64_t beat, uint32_t epoch, bool child);
/* Send until the neighbor has it, or is gone; a message without room is dropped and counted. */
void mr_links_post(mr_node *node, uint8_t port, const uint8_t *message, size_t size, double now);
void mr_links_retry(mr_node *node, double now);
/* Whether hellos are due; looks for silent neighbors then. */
bool mr_links_is_pulse(mr_node *node, double now);
void mr_links_pulse_with_neighbor(mr_node *node, double now);
/* Time when something is to be done even if nothing comes in. [s] */
double mr_links_wake(const mr_node *node);
/* New content of a frame: a hello, a batch, or a message that comes in for the first time. */
typedef struct mr_arrival {
  mr_frame_kind kind; /* HELLO, BATCH, DATA; 0 for nothing */
  mr_hello hello;
  mr_batch batch;
  const uint8_t *data; /* of a batch or a message */
  size_t size;
} mr_arrival;

void mr_links_take(mr_node *node, uint8_t port, const uint8_t *data, size_t size, double now,
                   mr_arrival *arrival);

/* A batch of the cycle node->cycle.number that is being written into node->frame. */
typedef struct mr_batch_writer {
  mr_writer body;
  uint8_t port, count;
} mr_batch_writer;

void mr_batch_begin(mr_node *node, mr_batch_writer *batch);
void mr_batch_add(mr_node *node, mr_batch_writer *batch, const uint8_t *message, size_t size);
void mr_batch_end(mr_node *node, mr_batch_writer *batch, bool complete);

/* Add the piece of a RECORD or WRITE message to a record of which `sizes` counts the bytes of each
 * piece; true once it is whole. Pieces beyond the size that the message names are dropped. */
bool mr_pieces_join(uint8_t record[MR_BUS_MAX_RECORD], uint16_t sizes[MR_BUS_MAX_PIECES],
                    const mr_message *message);

#endif
