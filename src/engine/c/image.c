/*
** Fossil's writable data: two sections, made by the build.
*/
#include <string.h>
#include "session.h"

extern char __start_fsl_data[], __stop_fsl_data[];
extern char __start_fsl_bss[], __stop_fsl_bss[];
#define DATA_SIZE ((size_t)(__stop_fsl_data - __start_fsl_data))
#define BSS_SIZE ((size_t)(__stop_fsl_bss - __start_fsl_bss))

size_t ocx_image_size(void){ return DATA_SIZE + BSS_SIZE; }
void ocx_image_save(char *to){
  memcpy(to, __start_fsl_data, DATA_SIZE);
  memcpy(to + DATA_SIZE, __start_fsl_bss, BSS_SIZE);
}
void ocx_image_load(const char *from){
  memcpy(__start_fsl_data, from, DATA_SIZE);
  memcpy(__start_fsl_bss, from + DATA_SIZE, BSS_SIZE);
}

int ocx_is_static(const void *p){
  const char *z = p;
  return (z>=__start_fsl_data && z<__stop_fsl_data) || (z>=__start_fsl_bss && z<__stop_fsl_bss);
}
