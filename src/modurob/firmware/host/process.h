/* A program of the bus as a process on a PC: the C twin of modurob/distributed/child.py.
 *
 * Standard input brings settings and events, standard output takes the socket's address and the
 * answers; both are lines of JSON. The process ends with its standard input, or when its parent has
 * changed.
 */
#ifndef MODUROB_PROCESS_H
#define MODUROB_PROCESS_H

#include "json.h"
#include "modurob/bus.h"

/* Functions of a program; `begin` and `event` may be NULL. */
typedef struct process_program {
  void (*set_up)(const char *settings); /* calls process_start */
  void (*begin)(double now);
  void (*take)(uint8_t port, const uint8_t *payload, size_t size, double now);
  void (*signal)(const uint8_t *signal, size_t size, double now);
  void (*event)(const char *line); /* of standard input, after the ones that all programs know */
  void (*finish)(double now);
  double (*wake)(void); /* time when the next step is due [s] */
} process_program;

int process_run(const process_program *program);
/* Take key, loss and seed from the settings and start the endpoint; returns the time. [s] */
double process_start(const char *settings, const mr_text *ports, uint8_t port_count);
/* Send a frame; see mr_node_outputs. */
void process_send(void *context, uint8_t port, const uint8_t *frame, size_t size);
/* Write a line to the parent. */
void process_answer(const char *text, size_t size);
/* Tell the parent a reason, and end. */
void process_fail(const char *reason);
/* Draw a number; see mr_random. */
uint64_t process_drawn(void *context);
mr_text process_text(const char *value);
/* A number of the settings; 0 without one. */
double process_number(const char *settings, const char *key);

#endif
