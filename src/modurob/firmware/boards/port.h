/* Functions that a board provides to boards/main.c: clock, transport, drive.
 *
 * docs/guide/porting.md describes them, and boards/qemu.c has them for an emulator.
 */
#ifndef MODUROB_PORT_H
#define MODUROB_PORT_H

#include "modurob/table.h"

#ifndef PORT_MESSAGE_SIZE /* largest message: a record and one byte */
#define PORT_MESSAGE_SIZE 2048
#endif

/* Time since some moment; wraps around. [us] */
uint32_t port_clock(void);

/* Send an answer (none if size is 0), and return the size of the next message in `message`; 0 as long
 * as none is whole. Does not wait. The buffer is the same in every call. */
size_t port_exchange(const uint8_t *answer, size_t size, uint8_t message[PORT_MESSAGE_SIZE]);

/* Apply torques unless `tau` is NULL, then read the joints unless `q` is NULL. [N m, N; rad, m; rad/s,
 * m/s] Joint k belongs to module table->parts[table->moved[k]].module, and is its joint number
 * table->parts[table->moved[k]].joint, both counted in the order of the records. */
void port_drive(const mr_table *table, const mr_real *tau, mr_real *q, mr_real *v);

#endif
