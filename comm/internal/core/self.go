package core

import "github.com/gorun/gorun/comm/internal/call"

// self is the backend of a group of one rank.
type self struct{ local }

// Takes implements Backend.
func (s *self) Takes(c *Collective) bool { return c.steps == nil }

// Run implements Backend.
func (s *self) Run(c *Collective) (err error) {
	if err := c.begin(); err != nil {
		return err
	}
	c.widen(false)
	in := c.in.Buf
	if len(c.in.Bufs) > 0 {
		in = c.in.Bufs[0]
	}
	switch {
	case c.op != nil:
		c.makeOperands()
		if k := c.kind(); k == call.KindReduceScatter || k == call.KindReduceScatterV {
			c.copyOperands(c.operands, in)
		}
		err = c.finish(nil)
	case len(c.out.Bufs) > 0:
		copy(c.out.Bufs[0], in)
	default:
		copy(c.out.Buf, in)
	}
	s.g.Comm.End(c.seq, err)
	return err
}
