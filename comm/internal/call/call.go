package call

// A Call is what a rank asked for: an operation and its arguments, in numbers that mean the same on every rank.
// It travels in every frame of a collective, so that ranks whose calls differ find out at the first frame.
type Call struct {
	Op     uint8  // which operation
	Type   uint8  // element type
	Reduce uint8  // reduction
	Root   int32  // root rank, or 0
	Count  uint64 // elements, where all ranks give as many
	Detail uint32 // a checksum of what else they agree on, or 0
}

// Words are what a call consists of, as numbers that are quickly passed on. The lower half of RootAndBefore is the root, the upper
// half what travels of the history before the call; see History.Add.
type Words struct{ What, RootAndBefore, Count uint64 }

// InWords is a call without details in words.
func InWords(op, typ, reduce uint8, root, count int) Words {
	return Words{uint64(op) | uint64(typ)<<8 | uint64(reduce)<<16, uint64(uint32(root)), uint64(count)}
}

// Words are what c consists of.
func (c Call) Words() Words {
	return Words{uint64(c.Op) | uint64(c.Type)<<8 | uint64(c.Reduce)<<16 | uint64(c.Detail)<<32, uint64(uint32(c.Root)), c.Count}
}

// Call is the call that consists of w.
func (w Words) Call() Call {
	return Call{
		Op: uint8(w.What), Type: uint8(w.What >> 8), Reduce: uint8(w.What >> 16), Detail: uint32(w.What >> 32),
		Root: int32(uint32(w.RootAndBefore)), Count: w.Count,
	}
}
