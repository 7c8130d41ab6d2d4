/* Functions that a board provides to boards/main.c: clock, transport, drive.
 *
 * docs/guide/porting.md describes them, and boards/qemu.c has them for an emulator.
 */
#ifndef MODUROB_PORT_H
#define MODUROB_PORT_H

#include "modurob/config.h"

#define PORT_MESSAGE_SIZE 2048 /* largest message: a record and one byte */

/* Time since some moment; wraps around. [us] */
uint32_t port_clock(void);

/* Send an answer (none if size is 0), and return the size of the next message, which is written to
 * `message`; 0 if none has come. Does not wait. */
size_t port_exchange(const uint8_t *answer, size_t size, uint8_t message[PORT_MESSAGE_SIZE]);

/* Apply torques unless `tau` is NULL, then read the joints unless `q` is NULL.
 * The joints of the table, in its order. [N m, N; rad, m; rad/s, m/s] */
void port_drive(int joints, const mr_real *tau, mr_real *q, mr_real *v);

#endif
