// The walk over the links of many bodies, one thread a body. The numbers in capitals and the
// functions of the passes are printed in front of it by emit_population.py, which has the words.

// Entry k of body b is at k * bodies + b.
#define ENTRY(array, k) array[(size_t)(k) * bodies + b]
#define ROW_NUMBER(link) ((unsigned)(link) & 0xffffff)
#define ROW_OF(link) (rows + (size_t)ROW_NUMBER(link) * ROW)
#define SLIDES(link) (((link) >> BIT_FLAGS) & IS_PRISMATIC)
#define FORK_OF(link) (forks + ((unsigned)((link) >> BIT_SLOT) & 255) * FORK_SIZE)
#define FORK_ABOVE(link) (forks + ((unsigned)((link) >> BIT_ABOVE) & 255) * FORK_SIZE)
#define KEPT_OF(i) (kept + (i) * KEPT)
#define ANGLE(i) turned[2 * (i)]
#define ANGLE_SINE(i) turned[2 * (i) + 1]

// Numbers that lie side by side are moved 16 bytes at a time.
#if SINGLE
typedef float4 pack_t;
INLINE void unpack(const pack_t p, real* to) { to[0] = p.x, to[1] = p.y, to[2] = p.z, to[3] = p.w; }
INLINE pack_t packed(const real* from) { return make_float4(from[0], from[1], from[2], from[3]); }
#else
typedef double2 pack_t;
INLINE void unpack(const pack_t p, real* to) { to[0] = p.x, to[1] = p.y; }
INLINE pack_t packed(const real* from) { return make_double2(from[0], from[1]); }
#endif
#define PACK (16 / (int)sizeof(real))

template <int N> INLINE void load(const real* __restrict__ from, real* to) {
#pragma unroll
  for (int k = 0; k < N; k += PACK) unpack(__ldg((const pack_t*)(from + k)), to + k);
}

#if STEPS && POINTS
template <int N> INLINE void load_changing(const real* from, real* to) {
#pragma unroll
  for (int k = 0; k < N; k += PACK) unpack(*(const pack_t*)(from + k), to + k);
}

template <int N> INLINE void store(const real* from, real* to) {
#pragma unroll
  for (int k = 0; k < N; k += PACK) *(pack_t*)(to + k) = packed(from + k);
}

// Forces of the ground on the points of a link. `masks` have a bit for each that remembers its
// place; the memory of the next point is `next` numbers behind.
INLINE void touch_ground(
    const int count, const real* __restrict__ corners, real* ground,
    const real* __restrict__ cells, real* own, unsigned* masks, real* memory, const size_t next) {
  real nothing[MEMORY] = {0};
  survey(nothing, own, cells, nothing, ground);
  for (int rest = count; rest > 0; rest -= MASK_BITS) {
    const unsigned held = *masks;
    unsigned near = held, after = 0;
#pragma unroll 8
    for (int k = 0; k < (rest < MASK_BITS ? rest : MASK_BITS); k++) {
      real corner[CORNER];
      load<CORNER>(corners + k * CORNER, corner);
      if (active(corner, own, cells, nothing, ground) > 0) near |= 1u << k;
    }
    while (near) {
      const int k = __ffs(near) - 1;
      near &= near - 1;
      real corner[CORNER], record[MEMORY] = {0};
      load<CORNER>(corners + k * CORNER, corner);
      if (held >> k & 1) load_changing<MEMORY>(memory + k * next, record);
      settle(corner, own, cells, record, ground);
      if (record[HELD] > 0) {
        after |= 1u << k;
        store<MEMORY>(record, memory + k * next);
      }
    }
    *masks++ = after;
    corners += MASK_BITS * CORNER;
    memory += MASK_BITS * next;
  }
}
#endif

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) KERNEL(
    const int bodies, const int* __restrict__ counts,
    const unsigned long long* __restrict__ links, const real* __restrict__ rows,
    const int* __restrict__ places,  // of the numbers of a body in the shared memory of its block
#if STEPS
    const long long first_step, const int steps, const double duration,
    const real* __restrict__ servos,  // SERVO numbers of each joint
    const double* __restrict__ frequency_all,
    real* __restrict__ q_all, real* __restrict__ v_all, double* __restrict__ work_all,
    const int* __restrict__ spans, const real* __restrict__ corners,
    const real* __restrict__ cells, const real* __restrict__ ground_all,
    unsigned* __restrict__ held_all, real* __restrict__ memory_all
#else
    const real* __restrict__ q_all, const real* __restrict__ v_all,
    const real* __restrict__ x_all, real* __restrict__ y_all
#endif
) {
  const int b = blockIdx.x * blockDim.x + threadIdx.x;
  if (b >= bodies) return;
  const int n = counts[b];
  if (!n) return;  // a thread without a body
#if SHARED
  extern __shared__ real shared[];
  real *const kept = shared + places[b], *const q = kept + n * KEPT, *const v = q + n;
  real *const turned = v + n, *const forks = turned + 2 * n;
#else
  real kept[LINKS * KEPT], forks[FORKS * FORK_SIZE], q[LINKS], v[LINKS], turned[2 * LINKS];
#endif
  real root[BASE_RECORD] = {0};
#if FREE_BASE
  for (int k = 0; k < NQ_BASE; k++) root[k] = ENTRY(q_all, k);
#if INPUTS > 1
  for (int k = 0; k < NV_BASE; k++) root[BASE_V + k] = ENTRY(v_all, k);
#endif
#if INPUTS > 2 && !STEPS
  for (int k = 0; k < NV_BASE; k++) root[BASE_X + k] = ENTRY(x_all, k);
#endif
#endif
  for (int i = 1; i < n; i++) {
    q[i] = ENTRY(q_all, NQ_BASE + i - 1);
    v[i] = INPUTS > 1 ? ENTRY(v_all, NV_BASE + i - 1) : 0;
  }
#if STEPS
  const real h = (real)duration;
  const double frequency = frequency_all[b];
  real power = 0;  // its sum over the steps
#if POINTS
  unsigned held[MASKS];
  real ground[GROUND];
  for (int k = 0; k < MASKS; k++) held[k] = ENTRY(held_all, k);
#pragma unroll
  for (int k = 0; k < GROUND; k++) ground[k] = ENTRY(ground_all, k);
#endif
  for (int step = 0; step < steps; step++) {
    const double turns = (double)(first_step + step) * duration * frequency;
    const real angle = (real)(6.283185307179586 * (turns - floor(turns)));
#endif
    real own[STATE], above[STATE], rate[6];
#if STEPS && POINTS
    int mask = 0;
    real* memory = memory_all + (size_t)b * MEMORY;
#endif
    // words of links, and below the spans of their points, are read one link ahead
    unsigned long long link = ENTRY(links, 0), ahead = ENTRY(links, n > 1);
#if STEPS && POINTS
    const int* span = spans + 2 * ROW_NUMBER(link);
    int first = span[0], count = span[1];
#endif
    for (int i = 0; i < n; i++) {
      const unsigned long long after = ENTRY(links, i + 2 < n ? i + 2 : n - 1);
#if STEPS && POINTS
      span = spans + 2 * ROW_NUMBER(ahead);
      const int first_ahead = span[0], count_ahead = span[1];
#endif
      real row[ROW];
      load<ROW>(ROW_OF(link), row);
      if (i == 0) {
        base(row, own, 0, root, 0);
      } else {
        if (link >> BIT_FLAGS & IS_CHAINED) hand_down(own, above);
        else take_fork_down(FORK_ABOVE(link), above);
        real record[JOINT_RECORD] = {q[i], 0, 0, v[i], 0};
        sincos(record[0], &record[2], &record[1]);
        ANGLE(i) = record[1];
        ANGLE_SINE(i) = record[2];
#if INPUTS > 2 && !STEPS
        record[4] = ENTRY(x_all, NV_BASE + i - 1);
#endif
        outward(SLIDES(link), row, own, above, record, 0);
      }
#if STEPS && POINTS
      if (count) {
        const size_t next = (size_t)bodies * MEMORY;  // the same body's next point
        const real* own_corners = corners + (size_t)first * CORNER;
        touch_ground(count, own_corners, ground, cells, own, held + mask, memory, next);
        mask += (count + MASK_BITS - 1) / MASK_BITS;
        memory += count * next;
      }
#endif
      keep_outward(own, KEPT_OF(i));
      if (link >> BIT_FLAGS & IS_FORK) keep_fork_down(own, FORK_OF(link));
#if STEPS && POINTS
      first = first_ahead;
      count = count_ahead;
#endif
      link = ahead;
      ahead = after;
    }
    bool carried = false;  // `above` holds what the next link, a child, has handed on
    ahead = ENTRY(links, n > 2 ? n - 2 : 0);
    for (int i = n - 1; i > 0; i--) {
      const unsigned long long after = ENTRY(links, i > 2 ? i - 2 : 0);
      real row[ROW], out[1];
      load<ROW>(ROW_OF(link), row);
      take_inward(KEPT_OF(i), own);
      if (carried) hand_up(above, own);
      else begin(row, own, 0, 0, 0);
      if (link >> BIT_FLAGS & IS_FIRST) {
        begin(row, above, 0, 0, 0);
        take_sums(KEPT_OF((int)(link >> BIT_PARENT)), above);
      } else {
        take_fork_up(FORK_ABOVE(link), above);
      }
      real record[JOINT_RECORD] = {q[i], ANGLE(i), ANGLE_SINE(i), v[i], 0};
#if STEPS
      real law[SERVO], wave[2];
#pragma unroll
      for (int k = 0; k < SERVO; k++) law[k] = ENTRY(servos, (i - 1) * SERVO + k);
      sincos(angle + law[SERVO_PHASE], &wave[0], &wave[1]);
      power += servo(law, 0, 0, record, wave);
#elif INPUTS > 2
      record[4] = ENTRY(x_all, NV_BASE + i - 1);
#endif
#if FRICTION_IN
      friction(row, 0, 0, record, 0);
#endif
      inward(SLIDES(link), row, own, above, record, out);
      keep_made(own, KEPT_OF(i));
      carried = link >> BIT_FLAGS & IS_CHAINED;
      if (!carried) keep_fork_up(above, FORK_ABOVE(link));
#if !STEPS && !HAS_BACK
#if FRICTION_OUT
      friction(row, 0, 0, record, out);
#endif
      ENTRY(y_all, NV_BASE + i - 1) = out[0];
#endif
      link = ahead;
      ahead = after;
    }
    take_inward(KEPT_OF(0), own);
    if (carried) hand_up(above, own);
    else begin(0, own, 0, 0, 0);
    {
      real row[ROW];
      load<ROW>(ROW_OF(link), row);
      turn(row, own, 0, root, rate);
    }
#if HAS_BACK
    if (link >> BIT_FLAGS & IS_FORK) keep_fork_back(own, FORK_OF(link));
    link = ENTRY(links, n > 1);
    ahead = ENTRY(links, n > 2 ? 2 : 0);
    for (int i = 1; i < n; i++) {
      const unsigned long long after = ENTRY(links, i + 2 < n ? i + 2 : n - 1);
      real row[ROW], out[1];
      load<ROW>(ROW_OF(link), row);
      if (link >> BIT_FLAGS & IS_CHAINED) hand_back(own, above);
      else take_fork_back(FORK_ABOVE(link), above);
      take_after(KEPT_OF(i), own);
      real record[JOINT_RECORD] = {q[i], ANGLE(i), ANGLE_SINE(i), v[i], 0};
      back(SLIDES(link), row, own, above, record, out);
      if (link >> BIT_FLAGS & IS_FORK) keep_fork_back(own, FORK_OF(link));
#if STEPS
      const real speed = record[3] + h * out[0];
      v[i] = speed;
      q[i] = record[0] + h * speed;
#else
      ENTRY(y_all, NV_BASE + i - 1) = out[0];
#endif
      link = ahead;
      ahead = after;
    }
#endif
#if STEPS
#if FREE_BASE
    move(&h, 0, 0, root, rate);
    const real *w = root + BASE_V + 3, spin = w[0] * w[0] + w[1] * w[1] + w[2] * w[2];
    // the series of `move` end there
    if (spin * h * h > LARGEST_TURN * LARGEST_TURN) root[0] = (real)nan("");
#endif
  }
#if FREE_BASE
  for (int k = 0; k < NQ_BASE; k++) ENTRY(q_all, k) = root[k];
  for (int k = 0; k < NV_BASE; k++) ENTRY(v_all, k) = root[BASE_V + k];
#endif
  for (int i = 1; i < n; i++) {
    ENTRY(q_all, NQ_BASE + i - 1) = q[i];
    ENTRY(v_all, NV_BASE + i - 1) = v[i];
  }
#if POINTS
  for (int k = 0; k < MASKS; k++) ENTRY(held_all, k) = held[k];
#endif
  work_all[b] += (double)power * duration;
#else
  for (int k = 0; k < NV_BASE; k++) ENTRY(y_all, k) = rate[k];
#endif
}
