/* Values in a line of JSON, as the parent process writes it; a value is a place in the line. */
#ifndef MODUROB_HOST_JSON_H
#define MODUROB_HOST_JSON_H

#include <stddef.h>

/* The value of a key in an object; NULL if it is not there. */
const char *json_get(const char *object, const char *key);
/* An item of an array; NULL if there are fewer. */
const char *json_item(const char *array, size_t index);
/* Write a text as UTF-8 with a closing zero; its bytes, or -1 if it is none or has no room. */
long json_text(const char *value, char *text, size_t room);
/* Write the bytes of a text of hexadecimal digits; how many, or -1. */
long json_bytes(const char *value, unsigned char *bytes, size_t room);

#endif
