#include "textflag.h"

// func StoreRelease(p *uint64, v uint64)
TEXT ·StoreRelease(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), AX
	MOVQ v+8(FP), BX
	MOVQ BX, (AX)
	RET

// func Await(p *uint64, least uint64, tries int) uint64
TEXT ·Await(SB), NOSPLIT, $0-32
	MOVQ p+0(FP), AX
	MOVQ least+8(FP), BX
	MOVQ tries+16(FP), CX
look:
	MOVQ (AX), DX
	CMPQ DX, BX
	JCC  done
	PAUSE
	DECQ CX
	JGT  look
done:
	MOVQ DX, ret+24(FP)
	RET

// func ticks() uint64
TEXT ·ticks(SB), NOSPLIT, $0-8
	RDTSC
	SHLQ $32, DX
	ORQ  DX, AX
	MOVQ AX, ret+0(FP)
	RET
