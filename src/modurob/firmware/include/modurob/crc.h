/* CRC-32 as in zlib, of records and of frames. */
#ifndef MODUROB_CRC_H
#define MODUROB_CRC_H

#include "modurob/config.h"

/* The checksum of data that follow those with the checksum `crc`; 0 before the first ones. */
uint32_t mr_crc32(uint32_t crc, const uint8_t *data, size_t size);

#endif
