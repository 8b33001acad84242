package memtest_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/gorun/gorun/comm/transport"
	"github.com/gorun/gorun/comm/transport/memtest"
	"github.com/gorun/gorun/comm/transport/transporttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	transporttest.Run(t, func(_ *testing.T, size int) []transport.Transport {
		network := memtest.NewNetwork(size)
		trs := make([]transport.Transport, size)
		for r := range trs {
			trs[r] = network.Transport(r)
		}
		return trs
	})
}
