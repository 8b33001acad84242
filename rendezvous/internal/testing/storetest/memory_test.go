package storetest

import (
	"math/rand/v2"
	"testing"
)

func TestMemory(t *testing.T) { Run(t, NewMemory(rand.New(rand.NewPCG(1, 1)))) }
