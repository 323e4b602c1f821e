/* SPDX-License-Identifier: Apache-2.0 */
#include "print.h"

#include <stdarg.h>

#include "soc.h"

static void number(uint32_t value, uint32_t base, int width, char fill) {
  char digits[10];
  int count = 0;
  do {
    uint32_t digit = value % base;
    digits[count++] = (char)(digit < 10 ? '0' + digit : 'a' + digit - 10);
    value /= base;
  } while (value != 0);
  for (int i = count; i < width; i++) {
    uart_put(fill);
  }
  while (count > 0) {
    uart_put(digits[--count]);
  }
}

static void text(const char *string) {
  while (*string != '\0') {
    uart_put(*string++);
  }
}

void print_bytes(const char *bytes, uint32_t size) {
  for (uint32_t i = 0; i < size; i++) {
    uart_put(bytes[i]);
  }
}

void print(const char *format, ...) {
  va_list values;
  va_start(values, format);
  for (; *format != '\0'; format++) {
    if (*format != '%') {
      uart_put(*format);
      continue;
    }
    char fill = ' ';
    int width = 0;
    format++;
    if (*format == '0') {
      fill = '0';
    }
    for (; *format >= '0' && *format <= '9'; format++) {
      width = 10 * width + (*format - '0');
    }
    while (*format == 'l') {
      format++;
    }
    switch (*format) {
      case 'd': {
        int32_t value = va_arg(values, int32_t);
        if (value < 0) {
          uart_put('-');
          width--;
        }
        number(value < 0 ? 0u - (uint32_t)value : (uint32_t)value, 10, width, fill);
        break;
      }
      case 'u':
        number(va_arg(values, uint32_t), 10, width, fill);
        break;
      case 'x':
        number(va_arg(values, uint32_t), 16, width, fill);
        break;
      case 'c':
        uart_put((char)va_arg(values, int));
        break;
      case 's':
        text(va_arg(values, const char *));
        break;
      case '%':
        uart_put('%');
        break;
      default:
        va_end(values);
        return;
    }
  }
  va_end(values);
}
