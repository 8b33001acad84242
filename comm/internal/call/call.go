package call

// A Call is what a rank asked for: an operation and its arguments, in numbers that mean the same on every rank.
// It travels in every frame of a collective, so that ranks whose calls differ find out at the first frame.
type Call struct {
	Kind   Kind   `json:"Op"` // the name that older ranks know
	Type   uint8  // element type
	Reduce uint8  // reduction
	Root   int32  // root rank, or 0
	Count  uint64 // elements, where all ranks give as many
	Detail uint32 // a checksum of what else they agree on, or 0
}

// Packed is a call in three words, which are quickly passed on and compared. The lower half of RootAndBefore is the
// root, the upper half what travels of the history before the call; see History.Add.
type Packed struct{ What, RootAndBefore, Count uint64 }

// Pack returns a call that only moves elements as Packed.
func Pack(kind Kind, typ uint8, root, count int) Packed {
	return Packed{uint64(kind) | uint64(typ)<<8, uint64(uint32(root)), uint64(count)}
}

// SetReduction makes p a call that combines elements by r.
func (p *Packed) SetReduction(r *Reduction) {
	p.What |= uint64(r.Code) << 16
	p.SetDetail(r.Detail())
}

// SetDetail sets the detail of the call.
func (p *Packed) SetDetail(d uint32) { p.What = uint64(uint32(p.What)) | uint64(d)<<32 }

// Kind returns the kind of the call.
func (p Packed) Kind() Kind { return Kind(p.What) }

// Type returns the element type of the call.
func (p Packed) Type() uint8 { return uint8(p.What >> 8) }

// Root returns the root of the call.
func (p Packed) Root() int { return int(int32(uint32(p.RootAndBefore))) }

// Pack returns c as Packed.
func (c Call) Pack() Packed {
	return Packed{uint64(c.Kind) | uint64(c.Type)<<8 | uint64(c.Reduce)<<16 | uint64(c.Detail)<<32, uint64(uint32(c.Root)), c.Count}
}

// Call returns the call that was packed.
func (p Packed) Call() Call {
	return Call{
		Kind: Kind(p.What), Type: uint8(p.What >> 8), Reduce: uint8(p.What >> 16), Detail: uint32(p.What >> 32),
		Root: int32(uint32(p.RootAndBefore)), Count: p.Count,
	}
}
