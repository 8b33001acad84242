package bootstrap

import (
	"strings"
	"testing"

	"github.com/gorun/gorun/env/network"
)

// Without a token nobody else is waited for where nobody else could come.
func TestAddressesWithoutAToken(t *testing.T) {
	ctx, p := t.Context(), place{size: 2, here: 1, master: "self.test:1"}
	if at, err := p.storeAddress(ctx, false); err != nil || at != "self.test:1" { // a name that means nothing yet
		t.Errorf("got %s, %v", at, err)
	}
	if at, _, err := new(Config).listenAddress(ctx, p); err != nil || !at.IsLoopback() {
		t.Errorf("without a token: %v, %v", at, err)
	}
	c := Config{Address: "127.0.0.1"}
	if err := c.chooseAddress(ctx); err != nil {
		t.Error(err)
	}
	outward, _, err := network.OutwardAddr(ctx)
	if err != nil || outward.IsLoopback() {
		t.Skipf("this machine has no address but loopback: %v", err)
	}
	c.Address = outward.String()
	if err := c.chooseAddress(ctx); err == nil || !strings.Contains(err.Error(), "there is no token") {
		t.Errorf("an address that others reach: %v", err)
	}
}
