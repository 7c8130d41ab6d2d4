/* A module's links to its neighbors, for bus_node.c alone: hellos, and messages that are repeated
 * until they arrive. */
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
/* Take in a hello; false if it is an old one, or that of another neighbor than before. */
bool mr_links_hear(mr_node *node, uint8_t port, uint32_t theirs, const mr_hello *hello,
                   double now);
void mr_links_acknowledged(mr_node *node, uint8_t port, uint32_t number);
/* Whether a number may not be taken now, because it is too far ahead. */
bool mr_links_is_far_ahead(const mr_node *node, uint8_t port, uint32_t number);
/* Whether a number comes in for the first time; it is recorded. */
bool mr_links_is_first(mr_node *node, uint8_t port, uint32_t number);

#endif
