package comm

import (
	"context"
)

// AllReduceCoalesced is an AllReduce of many buffers at once, which for short ones is much faster. Every rank gives as many,
// of the same lengths in the same order, and at least one.
func AllReduceCoalesced[T Element](ctx context.Context, g *Group, bufs [][]T, op Op) error {
	return allReduceCoalesced(g.spare(), g, bufs, op).do(ctx)
}

// IAllReduceCoalesced starts an AllReduceCoalesced and returns at once.
func IAllReduceCoalesced[T Element](g *Group, bufs [][]T, op Op) *Work {
	return allReduceCoalesced(new(collective), g, bufs, op).start()
}

func allReduceCoalesced[T Element](c *collective, g *Group, bufs [][]T, op Op) *collective {
	setParts(&c.out, bufs, 1)
	total := 0
	if len(bufs) > 0 {
		total = c.out.blocks[len(bufs)-1].Hi
	}
	c.reduces(g, callAllReduceCoalesced, typeOf[T](), op, total)
	if len(bufs) == 0 {
		c.refusef("no buffers given: want at least one")
	}
	wantValues(c, "bufs", op, bufs)
	c.call.Root = int32(len(bufs))
	c.call.Detail ^= c.out.checksum() // of their lengths
	c.begin = (*collective).coalescedTask
	return c
}

func (c *collective) coalescedTask() task {
	if len(c.out.parts) == 1 {
		return c.everywhere(c.out.parts[0])
	}
	flat := c.g.memory(c.out.blocks[len(c.out.blocks)-1].Hi * c.given.Size())
	rest := flat
	for _, part := range c.out.parts {
		rest = rest[copy(rest, part):]
	}
	t := c.everywhere(flat)
	t.end = func(c *collective) {
		c.finish()
		rest := c.into
		for _, part := range c.out.parts {
			rest = rest[copy(part, rest):]
		}
	}
	return t
}
