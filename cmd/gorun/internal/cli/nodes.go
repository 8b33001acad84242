package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gorun/gorun/launcher/topology"
)

func setNnodes(o *flags, s string) (err error) {
	o.minNodes, o.nnodes, err = parseNnodes(s)
	return err
}

// parseNnodes reads N or MIN:MAX.
func parseNnodes(s string) (least, most int, err error) {
	low, high, isRange := strings.Cut(s, ":")
	if !isRange {
		high = low
	}
	least, err1 := number(low, 1, maxNodes)
	most, err2 := number(high, 1, maxNodes)
	if err := errors.Join(err1, err2); err != nil || least > most {
		return 0, 0, fmt.Errorf("want a number of nodes from 1 to %d, or MIN:MAX with MIN at most MAX", maxNodes)
	}
	return least, most, nil
}

var procKinds = []string{"auto", "cpu", "gpu", "xpu"}

func setNproc(o *flags, s string) (err error) {
	switch s {
	case "auto", "gpu", "xpu":
		if o.nproc, err = countDevices(host{lookup: o.lookup, root: o.host.root}, s); o.nproc > 0 || err != nil {
			return err
		}
		if s != "auto" {
			return fmt.Errorf("there is no such device on this machine: want a number, or %s for one worker on each CPU", "cpu")
		}
		fallthrough
	case "cpu":
		o.nproc, err = topology.CPUCount(o.host.root)
		return err
	}
	if o.nproc, err = number(s, 1, maxProcs); err != nil {
		return fmt.Errorf("want a positive number, auto, cpu, gpu or xpu%s", didYouMean(s, procKinds))
	}
	return nil
}

// countDevices counts the devices of a kind that workers would see. auto is the first kind of which there are any.
func countDevices(h host, kind string) (n int, err error) {
	kinds := []string{kind}
	if kind == "auto" {
		kinds = []string{"gpu", "xpu"}
	}
	for _, k := range kinds {
		devices, err := topology.Accelerators(h.root, k, h.lookup)
		if err != nil || len(devices.Names) > 0 {
			return len(devices.Names), err
		}
	}
	return 0, nil
}
