/* Datagrams that can be neither forged nor replayed. A datagram is

     number of the sender's side: u64, of the receiver's side: u64, counter: u64, content, tag

   and each direction has a key of its own; docs/guide/bus.md, "Safety of the wire", has the
   handshake. */
#include "modurob/bus.h"

#include <string.h>

void mr_secure_start(mr_secure_link *link, const uint8_t *key, size_t key_size, const char *out,
                     const char *in, mr_random random, void *context) {
  memset(link, 0, sizeof *link);
  mr_hmac_sha256(key, key_size, (const uint8_t *)out, strlen(out), NULL, 0, link->outward);
  mr_hmac_sha256(key, key_size, (const uint8_t *)in, strlen(in), NULL, 0, link->inward);
  link->random = random;
  link->context = context;
  link->offer = random(context);
}

bool mr_secure_is_up(const mr_secure_link *link) { return link->there != 0; }

static size_t datagram(const mr_secure_link *link, uint8_t *data, uint64_t here, uint64_t there,
                       uint64_t counter, size_t size) {
  uint8_t tag[32];
  mr_writer writer = {data, MR_BUS_SECURE_HEADER + size + MR_BUS_TAG_BYTES, 0, false};
  mr_write_u64(&writer, here);
  mr_write_u64(&writer, there);
  mr_write_u64(&writer, counter);
  writer.at += size;
  mr_hmac_sha256(link->outward, sizeof link->outward, data, writer.at, NULL, 0, tag);
  mr_write_bytes(&writer, tag, MR_BUS_TAG_BYTES);
  return writer.at;
}

void mr_secure_request(const mr_secure_link *link, uint8_t *data) {
  datagram(link, data, link->offer, 0, 0, 0);
}

size_t mr_secure_seal(mr_secure_link *link, uint8_t *data, size_t size) {
  link->sent++;
  return datagram(link, data, link->here, link->there, link->sent, size);
}

/* Whether a tag is right, in a time that does not depend on where it differs. */
static bool is_tagged(const mr_secure_link *link, const uint8_t *data, size_t size) {
  uint8_t tag[32], difference = 0;
  mr_hmac_sha256(link->inward, sizeof link->inward, data, size - MR_BUS_TAG_BYTES, NULL, 0, tag);
  for (size_t k = 0; k < MR_BUS_TAG_BYTES; k++)
    difference = (uint8_t)(difference | (tag[k] ^ data[size - MR_BUS_TAG_BYTES + k]));
  return difference == 0;
}

/* Whether a counter comes in for the first time; the bits are those of counters modulo the window. */
static bool is_first(mr_secure_link *link, uint64_t counter) {
  uint32_t *word = link->seen + counter % MR_BUS_COUNTER_WINDOW / 32, bit = 1U << counter % 32;
  if (counter > link->newest) {
    if (counter - link->newest >= MR_BUS_COUNTER_WINDOW) {
      memset(link->seen, 0, sizeof link->seen);
    } else {
      for (uint64_t k = link->newest + 1; k <= counter; k++)
        link->seen[k % MR_BUS_COUNTER_WINDOW / 32] &= ~(1U << k % 32);
    }
    link->newest = counter;
  } else if (link->newest - counter >= MR_BUS_COUNTER_WINDOW || (*word & bit)) {
    return false;
  }
  *word |= bit;
  return true;
}

mr_opened mr_secure_open(mr_secure_link *link, const uint8_t *data, size_t size, uint8_t *answer) {
  mr_opened opened = {MR_ACCEPTED, NULL, 0, 0};
  mr_reader reader = {data, size, 0, false};
  uint64_t theirs, ours, counter;
  bool is_current;
  if (size < MR_BUS_SECURE_HEADER + MR_BUS_TAG_BYTES || !is_tagged(link, data, size)) {
    opened.refusal = MR_REFUSED_FORGED;
    return opened;
  }
  theirs = mr_read_u64(&reader);
  ours = mr_read_u64(&reader);
  counter = mr_read_u64(&reader);
  if (ours == link->offer) { /* made after the offer: from now on these numbers are in use */
    link->here = ours;
    link->there = theirs;
    link->offer = link->random(link->context);
    link->newest = 0;
    memset(link->seen, 0, sizeof link->seen);
    if (counter == 0) {
      opened.answer = datagram(link, answer, ours, theirs, 0, 0);
      return opened;
    }
  }
  is_current = ours == link->here && theirs == link->there;
  if (counter == 0) { /* a handshake without proof changes nothing here */
    if (!is_current && (ours == 0 || ours == link->here)) {
      uint64_t number = theirs == link->there ? link->here : link->offer;
      opened.answer = datagram(link, answer, number, theirs, 0, 0);
    }
    return opened;
  }
  if (!is_current) { /* a replay, or the neighbor has missed that this side started anew */
    opened.refusal = MR_REFUSED_REPLAYED;
    opened.answer = datagram(link, answer, link->offer, theirs, 0, 0);
    return opened;
  }
  if (!is_first(link, counter)) {
    opened.refusal = MR_REFUSED_REPLAYED;
    return opened;
  }
  opened.content = data + MR_BUS_SECURE_HEADER;
  opened.size = size - MR_BUS_SECURE_HEADER - MR_BUS_TAG_BYTES;
  return opened;
}
