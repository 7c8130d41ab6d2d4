#include "modurob/record.h"

#include <string.h>

#include "modurob/crc.h"
#include "modurob/pose.h"

#define HEADER 30 /* bytes before the first field */
#define VERSION 1
#define NEEDED 0x80 /* unknown fields from this tag on may not be skipped */

enum { KIND = 0x01, TITLE = 0x02, SOURCE = 0x03, BODY = 0x10, JOINT = 0x11, PORT = 0x12,
       SHAPE = 0x13, MESH = 0x14, PAIR = 0x20 };

typedef char counts_fit_their_types[MR_MAX_KIND_BODIES <= 128 && MR_MAX_KIND_JOINTS <= 127 &&
                                    MR_MAX_KIND_PORTS <= 255 && MR_MAX_MATES <= 255 &&
                                    MR_MAX_TURNS <= 65535 ? 1 : -1];

#define TRY(call)               \
  do {                          \
    const mr_status status_ = (call); \
    if (status_ != MR_OK) {     \
      return status_;           \
    }                           \
  } while (0)

/* -- entries ----------------------------------------------------------------------------------- */

typedef struct {
  const uint8_t *data;
  size_t left;
} reader;

typedef struct {
  const uint8_t *data;
  size_t size;
} text;

static mr_status take(reader *r, size_t size, const uint8_t **data)
{
  if (size > r->left) {
    return MR_TOO_SHORT;
  }
  *data = r->data;
  r->data += size;
  r->left -= size;
  return MR_OK;
}

static mr_status read_byte(reader *r, uint8_t *value)
{
  const uint8_t *data;
  TRY(take(r, 1, &data));
  *value = *data;
  return MR_OK;
}

/* Unsigned LEB128 of up to 64 bits; longer encodings of small numbers are allowed. */
static mr_status read_count(reader *r, uint64_t *value)
{
  unsigned shift = 0;
  uint8_t byte;
  *value = 0;
  do {
    uint64_t bits;
    TRY(read_byte(r, &byte));
    bits = byte & 0x7Fu;
    if (bits != 0 && (shift > 63 || (shift == 63 && bits > 1))) {
      return MR_BAD_FIELD;
    }
    *value |= shift > 63 ? 0 : bits << shift;
    shift = shift > 63 ? shift : shift + 7;
  } while (byte & 0x80u);
  return MR_OK;
}

static mr_status read_text(reader *r, text *found)
{
  uint64_t size;
  TRY(read_count(r, &size));
  if (size > r->left) {
    return MR_TOO_SHORT;
  }
  found->size = (size_t)size;
  return take(r, found->size, &found->data);
}

static mr_status read_real(reader *r, mr_real *value)
{
  const uint8_t *data;
  uint64_t bits = 0;
  double number;
  TRY(take(r, 8, &data));
  for (int k = 7; k >= 0; k--) {
    bits = bits << 8 | data[k];
  }
  memcpy(&number, &bits, sizeof number);
  *value = (mr_real)number + MR_C(0.0); /* no minus zero */
  return *value - *value == 0 ? MR_OK : MR_BAD_NUMBER; /* neither infinite nor NaN */
}

/* `count` numbers behind a mask of those that are there; `there` may be NULL. */
static mr_status read_reals(reader *r, int count, mr_real *values, uint32_t *there)
{
  uint32_t mask = 0;
  for (int k = 0; k < (count + 7) / 8; k++) {
    uint8_t byte;
    TRY(read_byte(r, &byte));
    mask |= (uint32_t)byte << (8 * k);
  }
  if (mask >> count) {
    return MR_BAD_FIELD;
  }
  for (int k = 0; k < count; k++) {
    values[k] = 0;
    if (mask >> k & 1u) {
      TRY(read_real(r, &values[k]));
    }
  }
  if (there != NULL) {
    *there = mask;
  }
  return MR_OK;
}

/* The number of a body, joint or port; whether it is there is checked when all are known. */
static mr_status read_index(reader *r, uint8_t *index)
{
  uint64_t value;
  TRY(read_count(r, &value));
  if (value > 0xFF) {
    return MR_BAD_INDEX;
  }
  *index = (uint8_t)value;
  return MR_OK;
}

static mr_status read_direction(reader *r, mr_real axis[3])
{
  mr_real largest = 0, length;
  TRY(read_reals(r, 3, axis, NULL));
  for (int k = 0; k < 3; k++) {
    largest = mr_abs(axis[k]) > largest ? mr_abs(axis[k]) : largest;
  }
  if (!(largest > 0)) {
    return MR_BAD_NUMBER;
  }
  length = mr_norm(axis);
  if (!(length > 0) || length - length != 0) { /* squares beyond the range of mr_real */
    for (int k = 0; k < 3; k++) {
      axis[k] /= largest;
    }
    length = mr_norm(axis);
  }
  if (mr_abs(length - 1) > MR_NOISE) {
    for (int k = 0; k < 3; k++) {
      axis[k] /= length;
    }
  }
  return MR_OK;
}

static mr_status read_pose(reader *r, mr_pose *pose)
{
  mr_real rpy[3];
  TRY(read_reals(r, 3, pose->p, NULL));
  TRY(read_reals(r, 3, rpy, NULL));
  mr_from_rpy(rpy, pose->R);
  return MR_OK;
}

/* `r` is not at its end. */
static mr_status next_field(reader *r, uint8_t *tag, reader *field)
{
  uint64_t size;
  *tag = *r->data++;
  r->left--;
  TRY(read_count(r, &size));
  if (size > r->left) {
    return MR_TOO_SHORT;
  }
  field->left = (size_t)size;
  return take(r, field->left, &field->data);
}

/* -- fields ------------------------------------------------------------------------------------ */

static mr_status read_kind(reader *r, mr_kind *kind, text *dyad_joint)
{
  text skipped;
  uint8_t flags;
  TRY(read_text(r, &skipped)); /* name */
  TRY(read_text(r, &skipped)); /* symbol */
  TRY(read_real(r, &kind->size));
  TRY(read_byte(r, &flags));
  TRY(read_text(r, dyad_joint));
  kind->is_virtual = (flags & 4u) != 0;
  return kind->size > 0 ? MR_OK : MR_BAD_NUMBER;
}

static mr_status read_body(reader *r, mr_solid *body)
{
  text name;
  mr_real largest = 0;
  mr_real *I = body->inertia;
  TRY(read_text(r, &name));
  TRY(read_real(r, &body->mass));
  TRY(read_reals(r, 3, body->center, NULL));
  TRY(read_reals(r, 9, I, NULL));
  for (int k = 0; k < 9; k++) {
    largest = mr_abs(I[k]) > largest ? mr_abs(I[k]) : largest;
  }
  largest *= MR_C(1.001e-6); /* as much as files with 6 digits need, with room for rounding */
  if (body->mass < 0 || (largest > 0 && !(body->mass > 0))) {
    return MR_BAD_NUMBER;
  }
  if (mr_abs(I[1] - I[3]) > largest || mr_abs(I[2] - I[6]) > largest ||
      mr_abs(I[5] - I[7]) > largest) {
    return MR_BAD_NUMBER;
  }
  return MR_OK;
}

static mr_status read_joint(reader *r, mr_joint *joint, text *name)
{
  mr_real limits[2], friction[2], drive[4];
  uint32_t there;
  TRY(read_text(r, name));
  TRY(read_byte(r, &joint->type));
  if (joint->type > MR_PRISMATIC) {
    return MR_BAD_FIELD;
  }
  TRY(read_index(r, &joint->parent));
  TRY(read_index(r, &joint->child));
  TRY(read_pose(r, &joint->pose));
  TRY(read_direction(r, joint->axis));
  TRY(read_reals(r, 2, limits, &there));
  joint->has_lower = (there & 1u) != 0;
  joint->has_upper = (there & 2u) != 0;
  joint->lower = limits[0];
  joint->upper = limits[1];
  if (there == 3 && limits[0] > limits[1]) {
    return MR_BAD_NUMBER;
  }
  TRY(read_reals(r, 2, friction, NULL));
  joint->viscous = friction[0];
  joint->coulomb = friction[1];
  if (friction[0] < 0 || friction[1] < 0) {
    return MR_BAD_NUMBER;
  }
  if (r->left == 0) {
    return MR_OK; /* no drive */
  }
  TRY(read_reals(r, 4, drive, &there));
  if ((there & 11u) != 11u) {
    return MR_BAD_FIELD; /* only the stiffness may be missing */
  }
  joint->armature = drive[1] * drive[1] * drive[0];
  joint->is_elastic = (there & 4u) != 0;
  joint->stiffness = drive[2];
  joint->damping = drive[3];
  if (drive[0] < 0 || !(drive[1] > 0) || (joint->is_elastic && !(drive[2] > 0)) || drive[3] < 0) {
    return MR_BAD_NUMBER;
  }
  if (!(drive[0] > 0) && (joint->is_elastic || drive[1] < 1 || drive[1] > 1)) {
    return MR_BAD_DATASHEET; /* a gear or a spring without a rotor */
  }
  return drive[3] > 0 && !joint->is_elastic ? MR_BAD_DATASHEET : MR_OK;
}

static mr_status read_label(reader *r, mr_port *port)
{
  uint8_t named;
  TRY(read_byte(r, &named));
  if (named == 0) {
    uint64_t coded;
    TRY(read_count(r, &coded)); /* 0, 1, 2, 3 ... for 0, -1, 1, -2 ... */
    if (coded > 0xFFFFFFFFu) {
      return MR_TOO_MANY; /* a label that int32_t cannot hold */
    }
    port->number = coded & 1u ? -(int32_t)(coded >> 1) - 1 : (int32_t)(coded >> 1);
  } else if (named == 1) {
    text name;
    TRY(read_text(r, &name));
    port->number = (int32_t)(mr_crc32(0, name.data, name.size) >> 1);
    port->is_named = 1;
  } else {
    return MR_BAD_FIELD;
  }
  return MR_OK;
}

static mr_status read_port(reader *r, mr_port *port)
{
  mr_real x[3], y[3], z[3];
  uint64_t count, value;
  text name;
  TRY(read_label(r, port));
  TRY(read_index(r, &port->body));
  TRY(read_reals(r, 3, port->pose.p, NULL));
  TRY(read_direction(r, z));
  TRY(read_direction(r, x));
  if (mr_abs(mr_dot(x, z)) > MR_PERPENDICULAR) {
    return MR_BAD_NUMBER;
  }
  mr_cross(z, x, y);
  for (int k = 0; k < 3; k++) {
    port->pose.R[3 * k] = x[k];
    port->pose.R[3 * k + 1] = y[k];
    port->pose.R[3 * k + 2] = z[k];
  }
  TRY(read_count(r, &count));
  if (count == 0 || count > r->left) {
    return MR_BAD_FIELD;
  }
  if (count > MR_MAX_TURNS) {
    return MR_TOO_MANY;
  }
  port->turn_count = (uint16_t)count;
  for (int k = 0; k < port->turn_count; k++) {
    TRY(read_count(r, &value));
    if (value >= 360) {
      return MR_BAD_NUMBER;
    }
    port->turns[k] = (uint16_t)value;
  }
  TRY(read_text(r, &name));
  port->connector = mr_crc32(0, name.data, name.size);
  TRY(read_count(r, &count));
  if (count == 0 || count > r->left) {
    return MR_BAD_FIELD;
  }
  if (count > MR_MAX_MATES) {
    return MR_TOO_MANY;
  }
  port->mate_count = (uint8_t)count;
  for (int k = 0; k < port->mate_count; k++) {
    TRY(read_text(r, &name));
    port->mates[k] = mr_crc32(0, name.data, name.size);
  }
  TRY(read_count(r, &value)); /* side */
  return value > 0 ? MR_OK : MR_BAD_NUMBER;
}

/* Header and checksums; `fields` is set to what lies between them. */
static mr_status open_record(const uint8_t *data, size_t size, uint8_t *id, reader *fields)
{
  uint32_t sums[2] = {0, 0};
  uint32_t length = 0;
  if (size < 4 || memcmp(data, "MROB", 4) != 0) {
    return MR_NOT_A_RECORD;
  }
  if (size < HEADER) {
    return MR_TOO_SHORT;
  }
  for (int k = 3; k >= 0; k--) {
    length = length << 8 | data[6 + k];
    sums[0] = sums[0] << 8 | data[HEADER - 4 + k];
    sums[1] = sums[1] << 8 | data[size - 4 + (size_t)k];
  }
  if (mr_crc32(0, data, HEADER - 4) != sums[0]) {
    return MR_BAD_HEADER_SUM;
  }
  memcpy(id, data + 10, MR_ID_SIZE);
  if (data[4] != VERSION || data[5] != 0) {
    return data[4] == 0 && data[5] == 0 ? MR_BAD_FIELD : MR_NEWER_VERSION;
  }
  if (length != size || size < HEADER + 4) {
    return MR_BAD_LENGTH;
  }
  if (mr_crc32(0, data, size - 4) != sums[1]) {
    return MR_BAD_SUM;
  }
  fields->data = data + HEADER;
  fields->left = size - HEADER - 4;
  return MR_OK;
}

/* -- whole datasheets -------------------------------------------------------------------------- */

/* Every index, and whether the joints connect the bodies into one tree; fills `rest`, `whole`. */
static mr_status finish(mr_kind *kind)
{
  uint8_t reached[MR_MAX_KIND_BODIES] = {1};
  mr_real h[3] = {0, 0, 0};
  if (kind->body_count == 0 || kind->port_count == 0 ||
      kind->joint_count != kind->body_count - 1) {
    return MR_BAD_DATASHEET;
  }
  for (int k = 0; k < kind->joint_count; k++) {
    if (kind->joints[k].parent >= kind->body_count || kind->joints[k].child >= kind->body_count) {
      return MR_BAD_INDEX;
    }
  }
  for (int k = 0; k < kind->port_count; k++) {
    if (kind->ports[k].body >= kind->body_count) {
      return MR_BAD_INDEX;
    }
    for (int other = 0; other < k; other++) {
      if (kind->ports[k].number == kind->ports[other].number &&
          kind->ports[k].is_named == kind->ports[other].is_named) {
        return MR_BAD_DATASHEET;
      }
    }
  }
  kind->rest[0] = mr_unit;
  for (int round = 0; round < kind->joint_count; round++) {
    for (int k = 0; k < kind->joint_count; k++) {
      const mr_joint *joint = &kind->joints[k];
      if (reached[joint->parent] && !reached[joint->child]) {
        mr_compose(&kind->rest[joint->parent], &joint->pose, &kind->rest[joint->child]);
        reached[joint->child] = 1;
      } else if (reached[joint->child] && !reached[joint->parent]) {
        mr_pose back;
        mr_inverse(&joint->pose, &back);
        mr_compose(&kind->rest[joint->child], &back, &kind->rest[joint->parent]);
        reached[joint->parent] = 1;
      }
    }
  }
  for (int k = 0; k < kind->body_count; k++) {
    mr_real c[3];
    if (!reached[k]) {
      return MR_BAD_DATASHEET;
    }
    mr_point(&kind->rest[k], kind->bodies[k].center, c);
    kind->whole.mass += kind->bodies[k].mass;
    for (int i = 0; i < 3; i++) {
      h[i] += kind->bodies[k].mass * c[i];
    }
  }
  for (int i = 0; i < 3 && kind->whole.mass > 0; i++) {
    kind->whole.center[i] = h[i] / kind->whole.mass;
  }
  for (int k = 0; k < kind->body_count; k++) {
    mr_real c[3], I[9];
    mr_point(&kind->rest[k], kind->bodies[k].center, c);
    for (int i = 0; i < 3; i++) {
      c[i] -= kind->whole.center[i];
    }
    mr_turn_inertia(kind->rest[k].R, kind->bodies[k].inertia, I);
    mr_add_point_mass(kind->bodies[k].mass, c, I);
    for (int i = 0; i < 9; i++) {
      kind->whole.inertia[i] += I[i];
    }
  }
  return MR_OK;
}

static int equal(text a, text b)
{
  return a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
}

mr_status mr_record_id(const uint8_t *data, size_t size, uint8_t id[MR_ID_SIZE])
{
  reader fields;
  const mr_status status = open_record(data, size, id, &fields);
  return status == MR_BAD_LENGTH || status == MR_BAD_SUM || status == MR_NEWER_VERSION ? MR_OK
                                                                                      : status;
}

/* The only KIND field, which may stand anywhere; at most one title and one source. */
static mr_status find_kind(reader fields, mr_kind *kind, text *dyad_joint)
{
  int count[4] = {0, 0, 0, 0};
  while (fields.left > 0) {
    uint8_t tag;
    reader field;
    TRY(next_field(&fields, &tag, &field));
    if (tag == KIND) {
      TRY(read_kind(&field, kind, dyad_joint));
    }
    if (tag >= KIND && tag <= SOURCE && ++count[tag] > 1) {
      return MR_BAD_DATASHEET;
    }
    if (tag >= NEEDED) {
      return MR_NEWER_VERSION;
    }
  }
  return count[KIND] == 1 ? MR_OK : MR_BAD_DATASHEET;
}

mr_status mr_record_read(const uint8_t *data, size_t size, uint8_t id[MR_ID_SIZE], mr_kind *kind)
{
  reader fields;
  text dyad_joint = {NULL, 0}, name;
  memset(kind, 0, sizeof *kind); /* padding too, so that equal kinds have equal bytes */
  kind->dyad_joint = -1;
  TRY(open_record(data, size, id, &fields));
  TRY(find_kind(fields, kind, &dyad_joint));
  while (fields.left > 0) {
    uint8_t tag;
    reader field;
    (void)next_field(&fields, &tag, &field); /* find_kind has gone through all of them */
    if (tag == BODY) {
      if (kind->body_count == MR_MAX_KIND_BODIES) {
        return MR_TOO_MANY;
      }
      TRY(read_body(&field, &kind->bodies[kind->body_count++]));
    } else if (tag == JOINT) {
      if (kind->joint_count == MR_MAX_KIND_JOINTS) {
        return MR_TOO_MANY;
      }
      TRY(read_joint(&field, &kind->joints[kind->joint_count], &name));
      if (dyad_joint.size > 0 && equal(name, dyad_joint)) {
        if (kind->joints[kind->joint_count].type != MR_REVOLUTE) {
          return MR_BAD_DATASHEET;
        }
        kind->dyad_joint = (int8_t)kind->joint_count;
      }
      kind->joint_count++;
    } else if (tag == PORT) {
      if (kind->port_count == MR_MAX_KIND_PORTS) {
        return MR_TOO_MANY;
      }
      TRY(read_port(&field, &kind->ports[kind->port_count++]));
    }
  }
  if (dyad_joint.size > 0 && kind->dyad_joint < 0) {
    return MR_BAD_DATASHEET;
  }
  return finish(kind);
}

mr_status mr_record_pair(const uint8_t *data, size_t size, int input, int output, mr_pair *pair)
{
  reader fields;
  uint8_t id[MR_ID_SIZE];
  TRY(open_record(data, size, id, &fields));
  while (fields.left > 0) {
    uint8_t tag, joint;
    mr_real kinematics[11];
    reader field;
    TRY(next_field(&fields, &tag, &field));
    if (tag != PAIR) {
      continue;
    }
    TRY(read_index(&field, &pair->input));
    TRY(read_index(&field, &pair->output));
    TRY(read_index(&field, &joint));
    if (pair->input != input || pair->output != output) {
      continue;
    }
    pair->joint = (int8_t)(joint - 1);
    TRY(read_reals(&field, 11, kinematics, NULL));
    memcpy(pair->proximal, kinematics, sizeof pair->proximal);
    memcpy(pair->distal, kinematics + 5, sizeof pair->distal);
    pair->delta_j = kinematics[10];
    TRY(read_reals(&field, 10, pair->proximal_mass, NULL));
    return read_reals(&field, 10, pair->distal_mass, NULL);
  }
  return MR_UNKNOWN_PORT;
}

int mr_port_numbered(const mr_kind *kind, int32_t number)
{
  for (int k = 0; k < kind->port_count; k++) {
    if (!kind->ports[k].is_named && kind->ports[k].number == number) {
      return k;
    }
  }
  return -1;
}

int mr_port_named(const mr_kind *kind, const char *name)
{
  const int32_t number = (int32_t)(mr_crc32(0, (const uint8_t *)name, strlen(name)) >> 1);
  for (int k = 0; k < kind->port_count; k++) {
    if (kind->ports[k].is_named && kind->ports[k].number == number) {
      return k;
    }
  }
  return -1;
}
