package core

import "github.com/gorun/gorun/comm/internal/call"

// AllReduceCoalesced makes c an AllReduce of all buffers that AddOut has added. all has their type and their total length.
func (c *Collective) AllReduceCoalesced(g *Group, all Data, op call.Reduction) *Collective {
	c.out.SetBlocksOfBufs(all.Type.Size())
	c.reduces(g, call.KindAllReduceCoalesced, all.Type, op, all.Count)
	if len(c.out.Bufs) == 0 {
		c.refusef("no buffers given: want at least one")
	}
	c.wantValues("bufs", &c.out, all.Type.Size())
	c.call.Root = int32(len(c.out.Bufs))
	c.call.Detail ^= lengths(&c.out)
	c.body = (*Collective).allReduceCoalesced
	return c
}

func (c *Collective) allReduceCoalesced() error {
	if len(c.out.Bufs) == 1 {
		return c.reduceToAll(c.out.Bufs[0])
	}
	packed := c.g.scratch.Take(c.out.Blocks[len(c.out.Blocks)-1].Hi * c.elemType.Size())
	rest := packed
	for _, buf := range c.out.Bufs {
		rest = rest[copy(rest, buf):]
	}
	if err := c.reduceToAll(packed); err != nil {
		return err
	}
	rest = packed
	for _, buf := range c.out.Bufs {
		rest = rest[copy(buf, rest):]
	}
	return nil
}
