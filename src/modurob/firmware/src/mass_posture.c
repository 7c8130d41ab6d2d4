/* The posture of a module from its datasheet: ModuleBody of modurob/distributed/mass/module_body.py. */
#include "modurob/mass.h"
#include "modurob/pose.h"

#include <string.h>

#define BITS 32 /* of the sets of bodies */

/* Pose of a joint's child in its parent at a displacement. [rad, m] */
static void joint_pose(const mr_joint *joint, mr_real q, mr_pose *T) {
  mr_pose move = mr_unit;
  if (joint->type == MR_REVOLUTE) mr_rotation(joint->axis, q, move.R);
  for (int k = 0; k < 3 && joint->type == MR_PRISMATIC; k++) move.p[k] = q * joint->axis[k];
  mr_compose(&joint->pose, &move, T);
}

/* Poses of all bodies in the frame of the first. */
static void find_poses(const mr_kind *kind, const double *q, mr_pose *T) {
  bool is_known[MR_MAX_KIND_BODIES] = {true};
  T[0] = mr_unit;
  for (uint8_t round = 1; round < kind->body_count; round++) {
    for (uint8_t k = 0, at = 0; k < kind->joint_count; k++) {
      const mr_joint *joint = &kind->joints[k];
      const mr_real value = joint->type == MR_FIXED ? 0 : (mr_real)q[at++];
      mr_pose forth, back;
      if (is_known[joint->parent] == is_known[joint->child]) continue;
      joint_pose(joint, value, &forth);
      mr_inverse(&forth, &back);
      if (is_known[joint->parent]) {
        mr_compose(&T[joint->parent], &forth, &T[joint->child]);
      } else {
        mr_compose(&T[joint->child], &back, &T[joint->parent]);
      }
      is_known[joint->parent] = is_known[joint->child] = true;
    }
  }
}

/* Bits of the bodies on the child's side of a joint. */
static uint32_t beyond(const mr_kind *kind, uint8_t joint) {
  uint32_t side = 1U << kind->joints[joint].child;
  for (uint8_t round = 1; round < kind->body_count; round++)
    for (uint8_t k = 0; k < kind->joint_count; k++) {
      const uint32_t ends = 1U << kind->joints[k].parent | 1U << kind->joints[k].child;
      if (k != joint && (side & ends)) side |= ends;
    }
  return side;
}

static void as_matrix(const mr_pose *T, mr_matrix out) {
  memset(out, 0, sizeof(mr_matrix));
  for (int i = 0; i < 3; i++) {
    for (int j = 0; j < 3; j++) out[i][j] = (double)T->R[3 * i + j];
    out[i][3] = (double)T->p[i];
  }
  out[3][3] = 1;
}

/* The set of mass of a body: second moments S = tr(I) E / 2 - I + m c c^T, first moments, mass. */
static void set_of_mass(const mr_solid *solid, const mr_pose *T, mr_matrix out) {
  mr_real I[9], c[3];
  double trace = 0;
  mr_point(T, solid->center, c);
  mr_turn_inertia(T->R, solid->inertia, I);
  for (int i = 0; i < 3; i++) trace += (double)I[4 * i];
  for (int i = 0; i < 3; i++) {
    for (int j = 0; j < 3; j++)
      out[i][j] = (i == j ? trace / 2 : 0) - (double)I[3 * i + j] + (double)(solid->mass * c[i] * c[j]);
    out[i][3] = out[3][i] = (double)(solid->mass * c[i]);
  }
  out[3][3] = (double)solid->mass;
}

mr_status mr_mass_posture_of(const mr_kind *kind, const double *q, mr_mass_posture *posture) {
  mr_pose T[MR_MAX_KIND_BODIES], port;
  uint8_t at = 0;
  if (kind->body_count > MR_MASS_MAX_BODIES || kind->body_count > BITS ||
      kind->port_count > MR_MASS_MAX_PORTS)
    return MR_TOO_MANY;
  find_poses(kind, q, T);
  posture->bodies = kind->body_count;
  posture->ports = kind->port_count;
  for (uint8_t k = 0; k < kind->body_count; k++)
    set_of_mass(&kind->bodies[k], &T[k], posture->body[k]);
  for (uint8_t k = 0; k < kind->port_count; k++) {
    mr_compose(&T[kind->ports[k].body], &kind->ports[k].pose, &port);
    as_matrix(&port, posture->port[k]);
    posture->port_body[k] = kind->ports[k].body;
  }
  for (uint8_t k = 0; k < kind->joint_count; k++) {
    const mr_joint *joint = &kind->joints[k];
    mr_real axis[3];
    if (joint->type == MR_FIXED) continue;
    if (at == MR_MASS_MAX_JOINTS) return MR_TOO_MANY;
    mr_apply(T[joint->child].R, joint->axis, axis);
    for (int i = 0; i < 3; i++) {
      posture->axis[at][i] = (double)axis[i];
      posture->point[at][i] = (double)T[joint->child].p[i];
    }
    posture->prismatic[at] = joint->type == MR_PRISMATIC;
    posture->child_bodies[at] = beyond(kind, k);
    posture->child_ports[at] = 0;
    for (uint8_t j = 0; j < kind->port_count; j++)
      if (posture->child_bodies[at] >> kind->ports[j].body & 1U)
        posture->child_ports[at] |= 1U << j;
    at++;
  }
  posture->joints = at;
  return MR_OK;
}
