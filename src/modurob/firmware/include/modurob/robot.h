/* A robot as its modules describe themselves: their records and how they are docked. */
#ifndef MODUROB_ROBOT_H
#define MODUROB_ROBOT_H

#include "modurob/record.h"

/* Port `port` of `module` holds port `other_port` of `other`; ports by their place in the record. */
typedef struct mr_docking {
  uint8_t module, port, other, other_port;
  uint16_t turn; /* [deg] */
} mr_docking;

typedef struct mr_robot {
  mr_kind kinds[MR_MAX_KINDS + 1]; /* the last is room for a record that is being read */
  uint8_t ids[MR_MAX_MODULES][MR_ID_SIZE];
  uint8_t kind_of[MR_MAX_MODULES];
  mr_docking dockings[MR_MAX_MODULES]; /* in the order in which they were made */
  uint8_t kind_count, module_count, docking_count;
} mr_robot;

void mr_robot_clear(mr_robot *robot);

/* Add a module by its record; `module` is set to its number. Equal datasheets are kept once. */
mr_status mr_robot_add(mr_robot *robot, const uint8_t *record, size_t size, int *module);

/* Dock two modules. Loops are found when the table is built. */
mr_status mr_robot_dock(mr_robot *robot, int module, int port, int other, int other_port, int turn);

/* Undock whatever is at a port; later dockings keep their order. */
mr_status mr_robot_undock(mr_robot *robot, int module, int port);

const mr_kind *mr_robot_kind(const mr_robot *robot, int module);

#endif
