/* Target of libFuzzer for the parser of records, which tools/fuzz_native.py builds.
 *
 * An input is taken as a record as it is, and as the fields of a record with right checksums. What can
 * be read is docked to itself, and its table is built.
 */
#include <string.h>

#include "modurob/crc.h"
#include "modurob/table.h"

#define LARGEST 4096

static void put32(uint8_t *at, uint32_t value)
{
  for (int k = 0; k < 4; k++) {
    at[k] = (uint8_t)(value >> (8 * k));
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static uint8_t room[LARGEST + 34];
  static mr_robot robot;
  static mr_table table;
  static mr_pair pair;
  mr_options options = mr_default_options;
  uint8_t id[MR_ID_SIZE];
  const size_t whole = size + 34;
  uint8_t *record;
  int module;
  robot.kind_count = robot.module_count = robot.docking_count = 0; /* quicker than to clear it */
  (void)mr_record_id(data, size, id);
  if (mr_robot_add(&robot, data, size, &module) == MR_OK || size > LARGEST) {
    return 0;
  }
  record = room + sizeof room - whole; /* reads beyond it are found */
  memset(record, 0, 30);
  memcpy(record, "MROB\1", 5);
  put32(record + 6, (uint32_t)whole);
  put32(record + 26, mr_crc32(0, record, 26));
  memcpy(record + 30, data, size);
  put32(record + whole - 4, mr_crc32(0, record, whole - 4));
  for (int input = 0; input < 2; input++) {
    (void)mr_record_pair(record, whole, input, 1 - input, &pair);
  }
  if (mr_robot_add(&robot, record, whole, &module) != MR_OK ||
      mr_robot_add(&robot, record, whole, &module) != MR_OK) {
    return 0;
  }
  for (int port = 0; port < mr_robot_kind(&robot, 0)->port_count; port++) {
    if (mr_robot_dock(&robot, 0, port, 1, 0, 0) == MR_OK) {
      break;
    }
  }
  for (int choice = 0; choice < 8; choice++) {
    options.physical = choice & 1;
    options.placed = (choice & 2) != 0;
    options.stiff = (choice & 4) != 0;
    (void)mr_table_build(&robot, &options, &table);
  }
  return 0;
}
