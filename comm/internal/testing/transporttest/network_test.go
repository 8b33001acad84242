package transporttest_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/gorun/gorun/comm/internal/testing/transporttest"
	"github.com/gorun/gorun/comm/internal/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	transporttest.Run(t, func(_ *testing.T, size int) []transport.Transport {
		network := transporttest.NewNetwork(size)
		trs := make([]transport.Transport, size)
		for r := range trs {
			trs[r] = network.Transport(r)
		}
		return trs
	})
}
