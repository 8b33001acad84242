package tcp

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"github.com/gorun/gorun/comm/internal/transport"
)

// A hello begins every connection. A stream of several connections is a bundle.
type hello struct {
	transport.Hello
	stream       uint64 // random, the same for all connections of a bundle
	index, count uint8  // which connection of the bundle this is, of how many
}

const helloSize = transport.HelloSize + 8 + 1 + 1

// hello returns the hello of the first connection of a stream to a rank. The caller sets count.
func (t *Transport) hello(to int) hello {
	return hello{Hello: transport.Hello{World: t.cfg.World, From: uint32(t.cfg.Rank), To: uint32(to)}, stream: rand.Uint64()}
}

func (h *hello) bytes() []byte {
	return append(binary.LittleEndian.AppendUint64(h.Bytes(), h.stream), h.index, h.count)
}

func (t *Transport) checkHello(b []byte) (h hello, err error) {
	if len(b) != helloSize {
		return h, fmt.Errorf("hello of %d bytes", len(b))
	}
	h = hello{stream: binary.LittleEndian.Uint64(b[transport.HelloSize:]), index: b[helloSize-2], count: b[helloSize-1]}
	h.Hello, err = transport.ParseHello(b, t.cfg.World, t.cfg.Rank, len(t.cfg.Peers))
	if err == nil && (h.count > MostConnections || h.index >= h.count) {
		err = fmt.Errorf("calls itself connection %d of %d", h.index, h.count)
	}
	return h, err
}
