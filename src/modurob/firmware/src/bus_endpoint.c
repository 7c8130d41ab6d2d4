/* The datagrams of a module: the label of the port that they enter (a byte with its length, then
 * UTF-8), then a secured content: payloads, each after its length. */
#include "modurob/bus.h"

#include <string.h>

static size_t label_bytes(const mr_plug *plug) { return 1U + plug->label.size; }

static uint8_t *content(mr_plug *plug) {
  return plug->data + label_bytes(plug) + MR_BUS_SECURE_HEADER;
}

static void put(const mr_endpoint *endpoint, const mr_plug *plug, const uint8_t *data,
                size_t size) {
  endpoint->board.send(endpoint->board.context, plug->address, data, size);
}

static void put_small(const mr_endpoint *endpoint, const mr_plug *plug, const uint8_t *data) {
  uint8_t whole[1 + MR_BUS_LARGEST_LABEL + MR_SECURE_ANSWER];
  size_t start = label_bytes(plug);
  memcpy(whole, plug->data, start);
  memcpy(whole + start, data, MR_SECURE_ANSWER);
  put(endpoint, plug, whole, start + MR_SECURE_ANSWER);
}

static void request(const mr_endpoint *endpoint, const mr_plug *plug) {
  uint8_t data[MR_SECURE_ANSWER];
  mr_secure_request(&plug->link, data);
  put_small(endpoint, plug, data);
}

void mr_endpoint_start(mr_endpoint *endpoint, const mr_text *labels, uint8_t ports,
                       const mr_endpoint_board *board) {
  memset(endpoint, 0, sizeof *endpoint);
  endpoint->labels = labels;
  endpoint->ports = ports;
  endpoint->board = *board;
}

void mr_endpoint_plug(mr_endpoint *endpoint, uint8_t port, uint64_t address, const mr_text *label,
                      const uint8_t *key, size_t key_size, const char *out, const char *in,
                      double now) {
  mr_plug *plug = &endpoint->plugs[port];
  plug->plugged = true;
  plug->address = address;
  plug->label = *label;
  plug->unsent = 0;
  plug->size = 0;
  plug->left = MR_BUS_MOST_PER_S;
  plug->at = now;
  plug->data[0] = label->size;
  memcpy(plug->data + 1, label->bytes, label->size);
  mr_secure_start(&plug->link, key, key_size, out, in, endpoint->board.random,
                  endpoint->board.context);
  request(endpoint, plug);
}

void mr_endpoint_unplug(mr_endpoint *endpoint, uint8_t port) {
  endpoint->plugs[port].plugged = false;
}

static void send_content(mr_endpoint *endpoint, mr_plug *plug) {
  size_t start = label_bytes(plug);
  size_t size = mr_secure_seal(&plug->link, plug->data + start, plug->size);
  put(endpoint, plug, plug->data, start + size);
  plug->unsent = 0;
  plug->size = 0;
}

static void drop_oldest(mr_plug *plug) {
  uint8_t *data = content(plug);
  size_t size = 2U + data[0] + 256U * data[1];
  plug->size -= size;
  plug->unsent--;
  memmove(data, data + size, plug->size);
}

void mr_endpoint_send(mr_endpoint *endpoint, uint8_t port, const uint8_t *payload, size_t size) {
  mr_plug *plug = &endpoint->plugs[port];
  if (!plug->plugged || size > MR_BUS_MAX_FRAME) return;
  if (mr_secure_is_up(&plug->link)) {
    if (plug->size + 2 + size > MR_BUS_CONTENT) send_content(endpoint, plug);
  } else {
    while (plug->unsent && (plug->unsent >= MR_BUS_MAX_UNSENT ||
                            plug->size + 2 + size > MR_BUS_CONTENT))
      drop_oldest(plug);
  }
  mr_writer writer = {content(plug), MR_BUS_CONTENT, plug->size, false};
  mr_write_u16(&writer, (uint16_t)size);
  mr_write_bytes(&writer, payload, size);
  plug->size = writer.at;
  plug->unsent++;
}

void mr_endpoint_flush(mr_endpoint *endpoint) {
  for (uint8_t port = 0; port < endpoint->ports; port++) {
    mr_plug *plug = &endpoint->plugs[port];
    if (!plug->plugged || !plug->unsent) continue;
    if (mr_secure_is_up(&plug->link)) {
      send_content(endpoint, plug);
    } else {
      request(endpoint, plug);
    }
  }
}

/* Whether one more payload may come in now: a token bucket. */
static bool within_rate(mr_plug *plug) {
  if (plug->left < 1) return false;
  plug->left -= 1;
  return true;
}

mr_refusal mr_endpoint_receive(mr_endpoint *endpoint, uint64_t source, const uint8_t *data,
                               size_t size, double now) {
  uint8_t answer[MR_SECURE_ANSWER], port;
  mr_reader reader = {data, size, 0, false}, payloads;
  mr_text label;
  mr_plug *plug;
  mr_opened opened;
  if (size > MR_BUS_LARGEST_DATAGRAM) return MR_REFUSED_OVERSIZED;
  mr_read_text(&reader, &label);
  if (reader.failed || label.size == 0) return MR_REFUSED_GARBAGE;
  port = mr_find_label(endpoint->labels, endpoint->ports, &label);
  if (port == MR_NO_PORT || !endpoint->plugs[port].plugged ||
      endpoint->plugs[port].address != source)
    return MR_REFUSED_STRANGER;
  plug = &endpoint->plugs[port];
  opened = mr_secure_open(&plug->link, data + reader.at, size - reader.at, answer);
  if (opened.answer) put_small(endpoint, plug, answer);
  if (plug->unsent && mr_secure_is_up(&plug->link)) send_content(endpoint, plug);
  if (!opened.content) return opened.refusal;
  payloads = (mr_reader){opened.content, opened.size, 0, false};
  while (payloads.at < payloads.size) { /* all are whole, or none counts */
    size_t length = mr_read_u16(&payloads);
    if (payloads.failed || payloads.size - payloads.at < length) return MR_REFUSED_GARBAGE;
    payloads.at += length;
  }
  plug->left += MR_BUS_MOST_PER_S * (now - plug->at);
  if (plug->left > MR_BUS_MOST_PER_S) plug->left = MR_BUS_MOST_PER_S;
  plug->at = now;
  payloads.at = 0;
  while (payloads.at < payloads.size && within_rate(plug)) {
    size_t length = mr_read_u16(&payloads);
    endpoint->board.deliver(endpoint->board.context, port, payloads.data + payloads.at, length);
    payloads.at += length;
  }
  return MR_ACCEPTED;
}
