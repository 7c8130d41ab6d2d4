#include "json.h"

#include <string.h>

static const char *after_space(const char *at) {
  while (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n') at++;
  return at;
}

static const char *after_text(const char *at) {
  for (at++; *at && *at != '"'; at++)
    if (*at == '\\' && at[1]) at++;
  return *at ? at + 1 : at;
}

static const char *after_value(const char *at) {
  int depth = 0;
  do {
    at = after_space(at);
    if (*at == '"') {
      at = after_text(at);
    } else if (*at == '{' || *at == '[') {
      depth++;
      at++;
    } else if (*at == '}' || *at == ']') {
      depth--;
      at++;
    } else if (*at == ',' || *at == ':') {
      at++;
    } else {
      at += strcspn(at, ",:]} \t\r\n\"");
    }
  } while (*at && depth > 0);
  return after_space(at);
}

const char *json_get(const char *object, const char *key) {
  size_t size = strlen(key);
  const char *at = object ? after_space(object) : "";
  if (*at != '{') return NULL;
  for (at = after_space(at + 1); *at == '"';) {
    const char *name = at + 1, *end = after_text(at);
    at = after_space(end);
    if (*at != ':') return NULL;
    at = after_space(at + 1);
    if ((size_t)(end - name) == size + 1 && memcmp(name, key, size) == 0) return at;
    at = after_value(at);
    if (*at == ',') at = after_space(at + 1);
  }
  return NULL;
}

const char *json_item(const char *array, size_t index) {
  const char *at = array ? after_space(array) : "";
  if (*at != '[') return NULL;
  for (at = after_space(at + 1); *at && *at != ']'; at = after_space(at + 1)) {
    if (index-- == 0) return at;
    at = after_value(at);
    if (*at != ',') return NULL;
  }
  return NULL;
}

static long digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/* The number of four hexadecimal digits, or -1. */
static long four_digits(const char *at) {
  long value = 0;
  for (int k = 0; k < 4; k++) {
    long next = digit(at[k]);
    if (next < 0) return -1;
    value = 16 * value + next;
  }
  return value;
}

static size_t utf8(long code, char *bytes) {
  static const unsigned char LEAD[] = {0, 0, 0xc0, 0xe0, 0xf0};
  size_t size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  for (size_t k = size; k > 0; k--) {
    bytes[k - 1] = (char)(size == 1 ? code : k == 1 ? (LEAD[size] | code) : (0x80 | (code & 0x3f)));
    code >>= 6;
  }
  return size;
}

long json_text(const char *value, char *text, size_t room) {
  size_t size = 0;
  if (!value || *value != '"') return -1;
  for (const char *at = value + 1; *at != '"'; at++) {
    char bytes[4] = {*at};
    size_t count = 1;
    if (*at == '\0') return -1;
    if (*at == '\\' && at[1] == 'u') {
      long code = four_digits(at + 2), low;
      if (code < 0) return -1;
      at += 5;
      if (code >= 0xd800 && code < 0xdc00 && at[1] == '\\' && at[2] == 'u' &&
          (low = four_digits(at + 3)) >= 0xdc00 && low < 0xe000) {
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        at += 6;
      }
      count = utf8(code, bytes);
    } else if (*at == '\\') {
      static const char NAMES[] = "bfnrt", MEANT[] = "\b\f\n\r\t";
      const char *found = strchr(NAMES, *++at);
      if (*at == '\0') return -1;
      bytes[0] = found ? MEANT[found - NAMES] : *at;
    }
    if (size + count >= room) return -1;
    memcpy(text + size, bytes, count);
    size += count;
  }
  text[size] = '\0';
  return (long)size;
}

long json_bytes(const char *value, unsigned char *bytes, size_t room) {
  size_t size = 0;
  if (!value || *value != '"') return -1;
  for (const char *at = value + 1; *at != '"'; at += 2) {
    long high = digit(at[0]), low = high < 0 ? -1 : digit(at[1]);
    if (low < 0 || size == room) return -1;
    bytes[size++] = (unsigned char)(16 * high + low);
  }
  return (long)size;
}
