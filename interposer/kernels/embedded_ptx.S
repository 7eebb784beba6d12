/* The PTX of fingerprint.cu, with the zero that ends a text. The build defines which file. */
        .section .rodata
        .globl  spillway_fingerprint_ptx
        .hidden spillway_fingerprint_ptx
        .type   spillway_fingerprint_ptx, @object
spillway_fingerprint_ptx:
        .incbin SPILLWAY_FINGERPRINT_PTX
        .byte   0
        .size   spillway_fingerprint_ptx, . - spillway_fingerprint_ptx
        .section .note.GNU-stack,"",@progbits
