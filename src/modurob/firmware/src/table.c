#include "modurob/table.h"

#include <string.h>

#include "modurob/pose.h"

typedef char parts_fit_a_byte[MR_MAX_PARTS < MR_NONE && MR_MAX_JOINTS < MR_NONE ? 1 : -1];

const mr_options mr_default_options = {
    {{1, 0, 0, 0, 1, 0, 0, 0, 1}, {0, 0, 0}}, {0, 0, MR_C(-9.81)}, 0, 0, 0, 0};

typedef struct {
  const mr_robot *robot;
  const mr_options *options;
  mr_table *table;
} builder;

static const mr_kind *kind_of(const builder *b, int module)
{
  return mr_robot_kind(b->robot, module);
}

/* -- dockings in the order of the tree ----------------------------------------------------------- */

/* Of all dockings that lead on from what is reached, the earliest comes first. */
static mr_status sort_dockings(const builder *b)
{
  uint8_t reached[MR_MAX_MODULES] = {0}, used[MR_MAX_MODULES] = {0};
  mr_table *table = b->table;
  int k = 0;
  reached[b->options->base] = 1;
  while (k < b->robot->docking_count) {
    const mr_docking *d = &b->robot->dockings[k];
    if (used[k] || !(reached[d->module] || reached[d->other])) {
      k++;
      continue;
    }
    if (reached[d->module] && reached[d->other]) {
      return MR_LOOP;
    }
    {
      mr_docking *next = &table->dockings[table->docking_count++];
      *next = *d;
      if (reached[d->other]) {
        next->module = d->other;
        next->port = d->other_port;
        next->other = d->module;
        next->other_port = d->port;
      }
      reached[next->other] = used[k] = 1;
      if (kind_of(b, next->other)->is_virtual) {
        return MR_BAD_DOCKING; /* a virtual joint lies between the world and the base */
      }
    }
    k = 0;
  }
  return MR_OK;
}

/* -- modules to parts ---------------------------------------------------------------------------- */

static int is_whole(const builder *b, int module)
{
  return !b->options->physical && kind_of(b, module)->dyad_joint >= 0;
}

static const mr_joint *joint_of(const builder *b, const mr_part *part)
{
  if (part->joint == MR_NONE) {
    return NULL;
  }
  return &kind_of(b, part->module)->joints[part->joint];
}

/* Whether a part has a joint, locked or not. */
static int has_joint(const builder *b, const mr_part *part)
{
  const mr_joint *joint = joint_of(b, part);
  return joint != NULL && joint->type != MR_FIXED;
}

static mr_status add_part(const builder *b, mr_part part)
{
  mr_table *table = b->table;
  const mr_joint *joint = joint_of(b, &part);
  const int elastic =
      !b->options->stiff && joint != NULL && joint->type != MR_FIXED && joint->is_elastic;
  if (table->part_count + elastic > MR_MAX_PARTS) {
    return MR_TOO_MANY;
  }
  if (elastic) {
    mr_part rotor = part;
    rotor.flags |= MR_IS_ROTOR;
    part.previous = table->part_count;
    part.flags |= MR_IS_SPRING;
    table->parts[table->part_count++] = rotor;
  }
  table->parts[table->part_count++] = part;
  return MR_OK;
}

/* The bodies of a module, breadth first from the one it is entered by. */
static mr_status add_module(const builder *b, mr_part first)
{
  mr_table *table = b->table;
  const mr_kind *kind = kind_of(b, first.module);
  uint8_t placed[MR_MAX_KIND_BODIES] = {0};
  mr_status status = add_part(b, first);
  placed[first.body] = 1;
  if (first.flags & MR_WHOLE) {
    return status;
  }
  for (int at = table->part_count - 1; status == MR_OK && at < table->part_count; at++) {
    const uint8_t body = table->parts[at].body;
    if (table->parts[at].flags & MR_IS_ROTOR) {
      continue;
    }
    for (int k = 0; status == MR_OK && k < kind->joint_count; k++) {
      const mr_joint *joint = &kind->joints[k];
      const int back = body == joint->child;
      const uint8_t next = back ? joint->parent : joint->child;
      if ((body == joint->parent || back) && !placed[next]) {
        mr_part part = {.module = first.module, .docking = MR_NONE};
        part.body = next;
        part.joint = (uint8_t)k;
        part.previous = (uint8_t)at;
        part.flags = back ? MR_REVERSED : 0;
        placed[next] = 1;
        status = add_part(b, part);
      }
    }
  }
  return status;
}

/* The pose of the docked module in the module that holds it, as far as both are in one piece. */
static void docked_pose(const builder *b, const mr_docking *d, int whole_i, int whole_j,
                        mr_pose *T_ij)
{
  const mr_kind *kind_i = kind_of(b, d->module), *kind_j = kind_of(b, d->other);
  const mr_port *port_i = &kind_i->ports[d->port], *port_j = &kind_j->ports[d->other_port];
  mr_pose T_ia = port_i->pose, T_jb = port_j->pose, T_ab, T_ib, T_bj;
  if (whole_i) {
    mr_compose(&kind_i->rest[port_i->body], &port_i->pose, &T_ia);
  }
  if (whole_j) {
    mr_compose(&kind_j->rest[port_j->body], &port_j->pose, &T_jb);
  }
  mr_mating(d->turn, &T_ab);
  mr_compose(&T_ia, &T_ab, &T_ib);
  mr_inverse(&T_jb, &T_bj);
  mr_compose(&T_ib, &T_bj, T_ij);
}

/* Axis and moment of a kind's dyad hinge in the module's frame. */
static void dyad_line(const mr_kind *kind, mr_real axis[3], mr_real moment[3])
{
  const mr_joint *joint = &kind->joints[kind->dyad_joint];
  const mr_pose *T = &kind->rest[joint->child];
  mr_apply(T->R, joint->axis, axis);
  mr_cross(T->p, axis, moment);
}

/* Whether the hinges of two docked cubes lie on one line, so that the docking cannot bend. */
static int is_serial(const builder *b, const mr_docking *d)
{
  const mr_kind *kind_i = kind_of(b, d->module), *kind_j = kind_of(b, d->other);
  mr_real w_i[3], m_i[3], w[3], m[3], w_j[3], m_j[3], lever[3], across[3], apart[3];
  mr_pose T_ij;
  if (kind_i->is_virtual) {
    return 0;
  }
  docked_pose(b, d, 1, 1, &T_ij);
  dyad_line(kind_i, w_i, m_i);
  dyad_line(kind_j, w, m);
  mr_apply(T_ij.R, w, w_j);
  mr_apply(T_ij.R, m, m_j);
  mr_cross(T_ij.p, w_j, lever);
  mr_cross(w_i, w_j, across);
  if (mr_norm(across) > MR_ONE_LINE) {
    return 0;
  }
  for (int k = 0; k < 3; k++) {
    apart[k] = m_i[k] - (mr_dot(w_i, w_j) < 0 ? -1 : 1) * (m_j[k] + lever[k]);
  }
  return mr_norm(apart) <= MR_ONE_LINE * kind_i->size;
}

static mr_status make_parts(const builder *b)
{
  mr_table *table = b->table;
  uint8_t start[MR_MAX_MODULES];
  mr_part part = {.module = b->options->base, .joint = MR_NONE, .docking = MR_NONE};
  mr_status status;
  table->parts[0] = part; /* the world, at the origin */
  table->parts[0].module = MR_NONE;
  table->parts[0].pose = mr_unit;
  table->part_count = 1;
  part.flags = is_whole(b, part.module) ? MR_WHOLE : 0;
  start[part.module] = 1;
  status = add_module(b, part);
  for (int k = 0; status == MR_OK && k < table->docking_count; k++) {
    const mr_docking *d = &table->dockings[k];
    const uint8_t on = kind_of(b, d->module)->ports[d->port].body;
    mr_part docked = {.module = d->other, .joint = MR_NONE, .docking = (uint8_t)k};
    docked.body = kind_of(b, d->other)->ports[d->other_port].body;
    docked.previous = start[d->module];
    if (!is_whole(b, d->module)) {
      while (table->parts[docked.previous].body != on ||
             (table->parts[docked.previous].flags & MR_IS_ROTOR)) {
        docked.previous++;
      }
    }
    if (is_whole(b, d->other)) {
      docked.flags = MR_WHOLE;
      docked.body = 0;
      if (is_whole(b, d->module)) {
        docked.joint = (uint8_t)kind_of(b, d->other)->dyad_joint;
        docked.flags |= is_serial(b, d) ? MR_LOCKED : 0;
      }
    }
    start[d->other] = table->part_count;
    status = add_module(b, docked);
    if (status == MR_OK && (table->parts[start[d->other]].flags & MR_IS_ROTOR)) {
      start[d->other]++; /* the body behind the rotor */
    }
  }
  return status;
}

/* The direction of a part's joint; q stays child relative to parent. */
static void axis_of(const builder *b, const mr_part *part, mr_real axis[3])
{
  const mr_joint *joint = joint_of(b, part);
  for (int k = 0; k < 3; k++) {
    axis[k] = part->flags & MR_REVERSED ? 0 - joint->axis[k] : joint->axis[k];
  }
}

/* T_previous_part(q) = before exp(axis q) after */
static void part_step(const builder *b, const mr_part *part, mr_pose *before, mr_pose *after)
{
  const mr_joint *joint = joint_of(b, part);
  *before = *after = mr_unit;
  if (part->docking != MR_NONE) {
    const mr_docking *d = &b->table->dockings[part->docking];
    docked_pose(b, d, is_whole(b, d->module), is_whole(b, d->other), before);
  } else if (joint == NULL) {
    *before = b->options->base_pose;
  }
  if (joint == NULL) {
    return;
  }
  if (part->docking != MR_NONE) { /* the hinge of a docked cube, in the middle of its module */
    const mr_pose *T_hinge = &kind_of(b, part->module)->rest[joint->child], T_ij = *before;
    mr_compose(&T_ij, T_hinge, before);
    mr_inverse(T_hinge, after);
  } else if (part->flags & MR_REVERSED) {
    mr_inverse(&joint->pose, after);
  } else {
    *before = joint->pose;
  }
  if (part->flags & MR_IS_ROTOR) {
    *after = mr_unit;
  } else if (part->flags & MR_IS_SPRING) {
    *before = mr_unit;
  }
}

static const mr_solid *solid_of(const builder *b, const mr_part *part)
{
  static const mr_solid nothing;
  const mr_kind *kind;
  if (part->module == MR_NONE || (part->flags & MR_IS_ROTOR)) {
    return &nothing;
  }
  kind = kind_of(b, part->module);
  return part->flags & MR_WHOLE ? &kind->whole : &kind->bodies[part->body];
}

/* -- parts to links ------------------------------------------------------------------------------ */

static int is_held(const mr_joint *joint, const mr_part *part)
{
  return !(part->flags & MR_IS_SPRING) && joint->has_lower && joint->has_upper &&
         !(joint->lower < joint->upper);
}

/* Lock joints with nothing to move and joints without room between their limits. */
static void lock_joints(const builder *b)
{
  mr_table *table = b->table;
  uint8_t has_load[MR_MAX_PARTS + 1] = {0};
  for (int k = table->part_count - 1; k > 0; k--) {
    mr_part *part = &table->parts[k];
    has_load[k] |= solid_of(b, part)->mass > 0;
    has_load[part->previous] |= has_load[k];
    if (has_joint(b, part) && (!has_load[k] || is_held(joint_of(b, part), part))) {
      part->flags |= MR_LOCKED;
    }
  }
}

/* Merge what is rigidly attached or locked; rows hold the poses of joints in links' frames. */
static mr_status collapse(const builder *b)
{
  mr_table *table = b->table;
  table->joint_count = 0;
  for (int k = 1; k < table->part_count; k++) {
    mr_part *part = &table->parts[k];
    const mr_part *previous = &table->parts[part->previous];
    const mr_joint *joint = joint_of(b, part);
    mr_pose before, after, at;
    part_step(b, part, &before, &after);
    mr_compose(&previous->pose, &before, &at);
    if (!has_joint(b, part) || (part->flags & MR_LOCKED)) {
      if (has_joint(b, part) && is_held(joint, part)) {
        mr_pose held = mr_unit, there = at;
        mr_real axis[3];
        axis_of(b, part, axis);
        if (joint->type == MR_REVOLUTE) {
          mr_rotation(axis, joint->lower, held.R);
        } else {
          for (int i = 0; i < 3; i++) {
            held.p[i] = axis[i] * joint->lower;
          }
        }
        mr_compose(&there, &held, &at);
      }
      part->link = previous->link;
      mr_compose(&at, &after, &part->pose);
      continue;
    }
    if (table->joint_count == MR_MAX_JOINTS) {
      return MR_TOO_MANY;
    }
    table->parent[table->joint_count] = previous->link;
    table->moved[table->joint_count] = (uint8_t)k;
    memcpy(table->rows[table->joint_count + 1].R, at.R, sizeof at.R);
    memcpy(table->rows[table->joint_count + 1].p, at.p, sizeof at.p);
    part->link = ++table->joint_count;
    part->pose = after;
  }
  return MR_OK;
}

/* The unit screw of the joint that moves link `link`, in its frame. */
static void screw_of(const builder *b, int link, mr_real v[3], mr_real w[3])
{
  const mr_part *part = &b->table->parts[b->table->moved[link - 1]];
  const int slides = joint_of(b, part)->type == MR_PRISMATIC;
  mr_real axis[3];
  axis_of(b, part, axis);
  for (int k = 0; k < 3; k++) {
    v[k] = slides ? axis[k] : 0;
    w[k] = slides ? 0 : axis[k];
  }
}

static mr_real armature_of(const builder *b, const mr_part *part)
{
  return part->flags & MR_IS_SPRING ? 0 : joint_of(b, part)->armature;
}

/* Lock joints that only repeat the one before: same line, and no mass between the two. */
static int lock_redundant(const builder *b)
{
  mr_table *table = b->table;
  uint8_t massive[MR_MAX_JOINTS + 1] = {0}, beyond[MR_MAX_JOINTS + 1] = {0};
  uint8_t dropped[MR_MAX_JOINTS + 1] = {0};
  int found = 0;
  for (int k = 0; k < table->part_count; k++) {
    massive[table->parts[k].link] |= solid_of(b, &table->parts[k])->mass > 0;
  }
  for (int k = 0; k < table->joint_count; k++) {
    beyond[table->parent[k]]++;
  }
  for (int k = 0; k < table->joint_count; k++) {
    const int link = table->parent[k];
    const mr_row *row = &table->rows[k + 1];
    mr_real v0[3], w0[3], v1[3], w1[3], v[3], w[3], lever[3], minus = 0, plus = 0;
    if (link == 0 || massive[link] || beyond[link] != 1 || dropped[link] ||
        armature_of(b, &table->parts[table->moved[link - 1]]) > 0) {
      continue;
    }
    screw_of(b, link, v0, w0);
    screw_of(b, k + 1, v1, w1);
    mr_apply(row->R, w1, w);
    mr_apply(row->R, v1, v);
    mr_cross(row->p, w, lever);
    for (int i = 0; i < 3; i++) {
      const mr_real d[4] = {mr_abs(v0[i] - v[i] - lever[i]), mr_abs(w0[i] - w[i]),
                            mr_abs(v0[i] + v[i] + lever[i]), mr_abs(w0[i] + w[i])};
      minus = d[0] > minus ? d[0] : minus;
      minus = d[1] > minus ? d[1] : minus;
      plus = d[2] > plus ? d[2] : plus;
      plus = d[3] > plus ? d[3] : plus;
    }
    if (minus < MR_ONE_LINE || plus < MR_ONE_LINE) {
      table->parts[table->moved[k]].flags |= MR_LOCKED;
      dropped[k + 1] = 1;
      found = 1;
    }
  }
  return found;
}

/* Mass, center (in `moment`) and inertia about it (in `second`) of each link, in its frame. */
static void add_masses(const builder *b)
{
  mr_table *table = b->table;
  mr_real c[3], about[MR_MAX_JOINTS + 1][3];
  memset(about, 0, sizeof about);
  for (int k = 0; k < table->part_count; k++) {
    const mr_part *part = &table->parts[k];
    const mr_solid *solid = solid_of(b, part);
    table->rows[part->link].mass += solid->mass;
    if (solid->mass > 0) {
      mr_point(&part->pose, solid->center, about[part->link]);
    }
  }
  /* about one of its bodies, so that a link with a single massive body keeps its center exactly */
  for (int k = 0; k <= table->joint_count; k++) {
    memcpy(table->rows[k].moment, about[k], sizeof about[k]);
  }
  for (int k = 0; k < table->part_count; k++) {
    const mr_part *part = &table->parts[k];
    const mr_solid *solid = solid_of(b, part);
    mr_row *row = &table->rows[part->link];
    if (solid->mass > 0) {
      mr_point(&part->pose, solid->center, c);
      for (int i = 0; i < 3; i++) {
        row->moment[i] += solid->mass / row->mass * (c[i] - about[part->link][i]);
      }
    }
  }
  for (int k = 0; k < table->part_count; k++) {
    const mr_part *part = &table->parts[k];
    const mr_solid *solid = solid_of(b, part);
    mr_row *row = &table->rows[part->link];
    mr_real I[9];
    mr_point(&part->pose, solid->center, c);
    for (int i = 0; i < 3; i++) {
      c[i] -= row->moment[i];
    }
    mr_turn_inertia(part->pose.R, solid->inertia, I);
    mr_add_point_mass(solid->mass, c, I);
    row->second[0] += I[0];
    row->second[1] += I[4];
    row->second[2] += I[8];
    row->second[3] += I[1];
    row->second[4] += I[2];
    row->second[5] += I[5];
  }
}

static int slides(const builder *b, int joint)
{
  return joint_of(b, &b->table->parts[b->table->moved[joint]])->type == MR_PRISMATIC;
}

/* Move the origin to the base module, over slides that only carry the whole robot.
 *
 * Squares of a large distance would cost the digits. `travel` becomes 0 for such slides.
 */
static void move_near_base(const builder *b)
{
  mr_table *table = b->table;
  uint8_t level[MR_MAX_JOINTS + 1] = {1}; /* links that cannot turn */
  mr_pose poses[MR_MAX_JOINTS + 1];       /* their poses at q = 0 */
  mr_real place[3], inner[3], origin[3];
  int base = table->parts[1].link, any = 0;
  poses[0] = mr_unit;
  for (int k = 0; k < table->joint_count; k++) {
    mr_row *row = &table->rows[k + 1];
    if (slides(b, k) && level[table->parent[k]] && !(row->stiffness > 0)) {
      mr_pose here;
      memcpy(here.R, row->R, sizeof here.R);
      memcpy(here.p, row->p, sizeof here.p);
      mr_compose(&poses[table->parent[k]], &here, &poses[k + 1]);
      level[k + 1] = 1;
      row->travel = 0;
      any = 1;
    }
  }
  memcpy(inner, table->parts[1].pose.p, sizeof inner);
  while (!level[base]) {
    const mr_row *row = &table->rows[base];
    mr_apply(row->R, inner, place);
    for (int i = 0; i < 3; i++) {
      inner[i] = place[i] + row->p[i];
    }
    base = table->parent[base - 1];
  }
  mr_point(&poses[base], inner, place);
  if (!any && mr_norm(place) == 0) {
    return;
  }
  for (int link = 0; link <= table->joint_count; link++) {
    mr_real from[3];
    if (!level[link]) {
      continue;
    }
    for (int i = 0; i < 3; i++) {
      from[i] = place[i] - poses[link].p[i];
    }
    mr_apply_t(poses[link].R, from, origin);
    for (int i = 0; i < 3; i++) {
      table->rows[link].moment[i] -= origin[i];
      for (int k = 0; k < table->joint_count; k++) {
        table->rows[k + 1].p[i] -= table->parent[k] == link ? origin[i] : 0;
      }
      for (int k = 1; k < table->part_count; k++) {
        table->parts[k].pose.p[i] -= table->parts[k].link == link ? origin[i] : 0;
      }
    }
  }
  for (int link = 1; link <= table->joint_count; link++) {
    if (level[link]) {
      memset(table->rows[link].p, 0, sizeof table->rows[link].p);
    }
  }
}

/* -- links to joint frames ------------------------------------------------------------------------
 *
 * Turned in double, whatever mr_real is: the weight of everything beyond a joint that is nearly
 * vertical acts by the last digits of its frame.
 */

static void widen(const mr_real *x, int count, double *out)
{
  for (int k = 0; k < count; k++) {
    out[k] = x[k];
  }
}

static void narrow(const double *x, int count, mr_real *out)
{
  for (int k = 0; k < count; k++) {
    out[k] = (mr_real)x[k];
  }
}

static void cross(const double a[3], const double b[3], double out[3])
{
  out[0] = a[1] * b[2] - a[2] * b[1];
  out[1] = a[2] * b[0] - a[0] * b[2];
  out[2] = a[0] * b[1] - a[1] * b[0];
}

/* A^T B, for B of `columns` columns */
static void t_times(const double A[9], const double *B, int columns, double *out)
{
  for (int i = 0; i < 3; i++) {
    for (int j = 0; j < columns; j++) {
      out[columns * i + j] =
          A[i] * B[j] + A[3 + i] * B[columns + j] + A[6 + i] * B[2 * columns + j];
    }
  }
}

static mr_real snapped(double x, double scale)
{
  return (x < 0 ? -x : x) <= (double)MR_NOISE * scale ? 0 : (mr_real)x;
}

/* Place x of the joint frame along the axis; R of the row is the link's frame in the parent's. */
static void choose_frame(const builder *b, int joint)
{
  mr_table *table = b->table;
  mr_row *row = &table->rows[joint + 1];
  mr_real direction[3];
  double given[9], R[9], frame[9] = {0}, axis[3], x[3], y[3], z[3], e[3] = {0, 0, 0}, size[3];
  int along = 0, least = 0;
  widen(row->R, 9, given);
  t_times(table->turn[table->parent[joint]], given, 3, R);
  axis_of(b, &table->parts[table->moved[joint]], direction);
  widen(direction, 3, axis);
  for (int k = 0; k < 3; k++) {
    x[k] = R[3 * k] * axis[0] + R[3 * k + 1] * axis[1] + R[3 * k + 2] * axis[2] + 0; /* not -0 */
    size[k] = x[k] < 0 ? -x[k] : x[k];
  }
  for (int k = 1; k < 3; k++) {
    along = size[k] > size[along] ? k : along;
    least = size[k] < size[least] ? k : least;
  }
  for (int k = least - 1; k >= 0; k--) { /* the first of equal ones, whatever their rounding */
    least = size[k] < size[least] + (double)MR_ALIGNED ? k : least;
  }
  table->pattern[joint] = slides(b, joint) ? MR_SLIDES : 0;
  if (size[(along + 1) % 3] < (double)MR_ALIGNED && size[(along + 2) % 3] < (double)MR_ALIGNED) {
    for (int j = 0; j < 3; j++) {
      frame[3 * ((j + along) % 3) + j] = 1;
    }
    row->sign = x[along] < 0 ? -1 : 1;
    table->pattern[joint] = (uint8_t)(table->pattern[joint] + along);
  } else {
    double length;
    e[least] = 1;
    cross(x, e, y);
    length = sqrt(y[0] * y[0] + y[1] * y[1] + y[2] * y[2]);
    for (int k = 0; k < 3; k++) {
      y[k] /= length;
    }
    cross(x, y, z);
    for (int k = 0; k < 3; k++) {
      frame[3 * k] = x[k];
      frame[3 * k + 1] = y[k];
      frame[3 * k + 2] = z[k];
    }
    row->sign = 1;
    table->pattern[joint] = (uint8_t)(table->pattern[joint] + MR_GENERAL);
  }
  row->travel *= row->sign;
  narrow(frame, 9, row->R);
  t_times(R, frame, 3, table->turn[joint + 1]);
}

/* Mass by its moments, in the joint frame: h = m c, S = tr(I) / 2 E - I + m c c^T. */
static void turn_masses(const builder *b, int link)
{
  mr_row *row = &b->table->rows[link];
  const double *turn = b->table->turn[link], m = row->mass;
  static const uint8_t upper[6] = {0, 4, 8, 1, 2, 5};
  double c[3], I[6], half_turned[9], mc[3], h[3], half, spread;
  widen(row->moment, 3, c);
  widen(row->second, 6, I);
  half = (I[0] + I[1] + I[2]) / 2;
  {
    const double S[9] = {
        half - I[0] + m * c[0] * c[0], 0 - I[3] + m * c[0] * c[1], 0 - I[4] + m * c[0] * c[2],
        0 - I[3] + m * c[1] * c[0], half - I[1] + m * c[1] * c[1], 0 - I[5] + m * c[1] * c[2],
        0 - I[4] + m * c[2] * c[0], 0 - I[5] + m * c[2] * c[1], half - I[2] + m * c[2] * c[2]};
    spread = S[0] + S[4] + S[8];
    t_times(turn, S, 3, half_turned);
  }
  for (int k = 0; k < 3; k++) {
    mc[k] = m * c[k];
  }
  t_times(turn, mc, 1, h);
  for (int k = 0; k < 3; k++) {
    row->moment[k] = snapped(h[k], sqrt(m * spread));
  }
  for (int k = 0; k < 6; k++) {
    const double *left = half_turned + 3 * (upper[k] / 3), *right = turn + upper[k] % 3;
    row->second[k] = snapped(left[0] * right[0] + left[1] * right[3] + left[2] * right[6], spread);
  }
}

static mr_real largest_of(const mr_real *x, int count)
{
  mr_real largest = 0;
  for (int k = 0; k < count; k++) {
    largest = mr_abs(x[k]) > largest ? mr_abs(x[k]) : largest;
  }
  return largest;
}

/* Without the rounding errors of quarter turns. */
static void make_whole(mr_real R[9])
{
  for (int k = 0; k < 9; k++) {
    for (int whole = -1; whole <= 1; whole++) {
      R[k] = mr_abs(R[k] - (mr_real)whole) <= MR_NOISE ? (mr_real)whole : R[k];
    }
  }
}

static void turn_parts(const builder *b)
{
  mr_table *table = b->table;
  mr_real reach[MR_MAX_JOINTS + 1] = {0}; /* of the bodies in each link */
  for (int k = 1; k < table->part_count; k++) {
    mr_part *part = &table->parts[k];
    double R[9], p[3], turned[9];
    widen(part->pose.R, 9, R);
    widen(part->pose.p, 3, p);
    t_times(table->turn[part->link], R, 3, turned);
    narrow(turned, 9, part->pose.R);
    t_times(table->turn[part->link], p, 1, turned);
    narrow(turned, 3, part->pose.p);
    if (!(part->flags & MR_IS_ROTOR)) {
      const mr_real far = largest_of(part->pose.p, 3);
      reach[part->link] = far > reach[part->link] ? far : reach[part->link];
    }
  }
  for (int k = 1; k < table->part_count; k++) {
    mr_part *part = &table->parts[k];
    make_whole(part->pose.R);
    for (int i = 0; i < 3; i++) {
      part->pose.p[i] = snapped(part->pose.p[i], reach[part->link]);
    }
  }
}

static void fill_drives(const builder *b)
{
  mr_table *table = b->table;
  for (int k = 0; k < table->joint_count; k++) {
    const mr_part *part = &table->parts[table->moved[k]];
    const mr_joint *joint = joint_of(b, part);
    const int spring = part->flags & MR_IS_SPRING;
    mr_row *row = &table->rows[k + 1];
    row->travel = 1;
    row->viscous = spring ? joint->damping : joint->viscous;
    row->coulomb = spring ? 0 : joint->coulomb;
    row->armature = armature_of(b, part);
    row->stiffness = spring ? joint->stiffness : 0;
    if (row->viscous > 0 || row->coulomb > 0 || row->stiffness > 0) {
      table->has_friction = 1;
    }
  }
}

static void make_frames(const builder *b)
{
  mr_table *table = b->table;
  uint8_t last_child[MR_MAX_JOINTS + 1] = {0};
  widen(mr_unit.R, 9, table->turn[0]);
  for (int k = 0; k < table->joint_count; k++) {
    mr_row *row = &table->rows[k + 1];
    double p[3], turned[3];
    mr_real scale;
    widen(row->p, 3, p);
    choose_frame(b, k);
    t_times(table->turn[table->parent[k]], p, 1, turned);
    narrow(turned, 3, row->p);
    scale = largest_of(row->p, 3);
    for (int i = 0; i < 3; i++) {
      row->p[i] = snapped(turned[i], scale);
    }
    last_child[table->parent[k]] = (uint8_t)(k + 1);
  }
  for (int k = 0; k < table->joint_count; k++) { /* joints are visited from the last to the first */
    const int parent = table->parent[k];
    table->variant[k] = (uint8_t)((last_child[k + 1] == 0 ? MR_TIP : 0) |
                                  (last_child[parent] == k + 1 && parent > 0 ? MR_FIRST : 0) |
                                  (table->rows[k + 1].armature > 0 ? MR_ROTOR : 0));
  }
  for (int link = 0; link <= table->joint_count; link++) {
    turn_masses(b, link);
  }
  turn_parts(b);
  memcpy(table->rows[0].p, b->options->gravity, sizeof table->rows[0].p);
}

/* Whether the base is turned by a rotation, and no number is infinite or NaN. */
static int is_placed_well(const mr_options *options)
{
  const mr_real *R = options->base_pose.R, *p = options->base_pose.p, *g = options->gravity;
  mr_real z[3];
  for (int i = 0; i < 3; i++) {
    for (int j = 0; j <= i; j++) {
      if (!(mr_abs(mr_dot(R + 3 * i, R + 3 * j) - (i == j)) < MR_C(1e-5))) {
        return 0;
      }
    }
    if (p[i] - p[i] != 0 || g[i] - g[i] != 0) {
      return 0;
    }
  }
  mr_cross(R, R + 3, z);
  return mr_dot(z, R + 6) > 0;
}

/* Whether products of large numbers of the records are numbers, too. */
static int is_finite(const mr_table *table)
{
  const size_t row_size = sizeof table->rows[0] / sizeof(mr_real);
  mr_real sum = 0; /* of zeros and NaN */
  for (int link = 0; link <= table->joint_count; link++) {
    const mr_real *x = (const mr_real *)&table->rows[link];
    for (size_t k = 0; k < row_size; k++) {
      sum += x[k] - x[k];
    }
  }
  for (int k = 1; k < table->part_count; k++) {
    for (int i = 0; i < 3; i++) {
      sum += table->parts[k].pose.p[i] - table->parts[k].pose.p[i];
    }
  }
  return sum == 0;
}

mr_status mr_table_build(const mr_robot *robot, const mr_options *options, mr_table *table)
{
  const builder b = {robot, options, table};
  mr_status status = MR_UNKNOWN_MODULE;
  memset(table, 0, sizeof *table);
  if (options->base < robot->module_count) {
    status = is_placed_well(options) ? sort_dockings(&b) : MR_BAD_ARGUMENT;
  }
  status = status == MR_OK ? make_parts(&b) : status;
  if (status == MR_OK) {
    lock_joints(&b);
    do {
      status = collapse(&b);
    } while (status == MR_OK && lock_redundant(&b));
  }
  if (status == MR_OK) {
    fill_drives(&b);
    add_masses(&b);
    if (!options->placed) {
      move_near_base(&b);
    }
    make_frames(&b);
    status = is_finite(table) ? MR_OK : MR_BAD_NUMBER;
  }
  if (status != MR_OK) {
    memset(table, 0, sizeof *table);
  }
  return status;
}
