#include "textflag.h"

// func storeRelease(p *uint64, v uint64)
TEXT ·storeRelease(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), AX
	MOVQ v+8(FP), BX
	MOVQ BX, (AX)
	RET

// func await(p *uint64, least uint64, tries int) uint64
TEXT ·await(SB), NOSPLIT, $0-32
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
