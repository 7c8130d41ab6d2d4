/* Messages of any size, one after the other in fixed memory. */
#include "modurob/bus.h"

#include <string.h>

void mr_store_start(mr_store *store, mr_stored *entries, uint32_t max_entries, uint8_t *bytes,
                    uint32_t max_bytes) {
  store->entries = entries;
  store->bytes = bytes;
  store->max_entries = max_entries;
  store->max_bytes = max_bytes;
  store->count = store->used = 0;
}

mr_stored *mr_store_add(mr_store *store, uint8_t owner, const uint8_t *data, size_t size) {
  mr_stored *entry;
  if (store->count == store->max_entries || store->max_bytes - store->used < size) return NULL;
  entry = &store->entries[store->count++];
  memset(entry, 0, sizeof *entry);
  entry->owner = owner;
  entry->offset = store->used;
  entry->size = (uint16_t)size;
  if (size) memcpy(store->bytes + store->used, data, size);
  store->used += (uint32_t)size;
  return entry;
}

void mr_store_remove(mr_store *store, uint32_t index) {
  mr_stored gone = store->entries[index];
  uint32_t end = gone.offset + gone.size;
  memmove(store->bytes + gone.offset, store->bytes + end, store->used - end);
  store->used -= gone.size;
  store->count--;
  for (uint32_t k = index; k < store->count; k++) {
    store->entries[k] = store->entries[k + 1];
    store->entries[k].offset -= gone.size;
  }
}

void mr_store_remove_all_of(mr_store *store, uint8_t owner) {
  for (uint32_t k = store->count; k > 0; k--)
    if (store->entries[k - 1].owner == owner) mr_store_remove(store, k - 1);
}

bool mr_store_replace(mr_store *store, uint32_t index, const uint8_t *data, size_t size) {
  mr_stored *entry = &store->entries[index];
  uint32_t end = entry->offset + entry->size, moved = entry->offset + (uint32_t)size;
  if (size > entry->size && store->max_bytes - store->used < size - entry->size) return false;
  memmove(store->bytes + moved, store->bytes + end, store->used - end);
  memcpy(store->bytes + entry->offset, data, size);
  for (uint32_t k = index + 1; k < store->count; k++)
    store->entries[k].offset = store->entries[k].offset - end + moved;
  store->used = store->used - end + moved;
  entry->size = (uint16_t)size;
  return true;
}
