package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gorun/gorun/launcher"
	"github.com/gorun/gorun/launcher/topology"
)

// The values of --numa-binding that are not torchrun's policies: no binding, and the default.
const (
	noBinding   = "none"
	autoBinding = "auto"
)

var numaPolicies = func() []string {
	names := []string{autoBinding, noBinding}
	for _, p := range topology.Policies {
		names = append(names, string(p))
	}
	return names
}()

func setThreads(o *flags, s string) (err error) {
	if s == "auto" {
		o.threads = autoThreads
		return nil
	}
	if o.threads, err = number(s, 1, maxProcs); err != nil {
		return fmt.Errorf("want a positive number or auto%s", didYouMean(s, []string{"auto"}))
	}
	return nil
}

// processors is the workers' part of this machine.
type processors struct {
	bindings []topology.Binding // by local rank; nil: none is bound
	shares   []string           // the CPUs to which package comm binds workers, by local rank, and after a slash all CPUs; nil: none
	maxProcs []int              // GOMAXPROCS, by local rank; nil: nothing is said
	threads  int                // OMP_NUM_THREADS; 0: nothing is said
	devices  topology.Devices   // one for each local rank; no names: not narrowed
}

// processors decides which worker gets which processors and devices.
func (o *flags) processors() (p processors, err error) {
	if o.virtualLocalRank {
		if p.devices, err = o.devices(); err != nil {
			return p, err
		}
	}
	p.threads = max(o.threads, 0)
	isAuto := (o.numa == "" || o.numa == autoBinding) && o.nproc > 1
	isTold := o.requestedPolicy() != "" || o.threads == autoThreads
	if !isAuto && !isTold {
		return p, nil
	}
	machine, err := topology.Usable(o.host.root)
	switch {
	case err != nil && isTold:
		return p, err
	case err != nil: // then nothing is better than nobody
		return p, nil
	}
	if policy := o.requestedPolicy(); policy != "" {
		gpus, err := o.gpus()
		if err != nil {
			return p, err
		}
		p.bindings, err = topology.Bind(machine, policy, o.nproc, gpus)
		if err != nil {
			return p, usagef("%s: %w", o.given["numa-binding"], err)
		}
	}
	bindings := p.bindings
	if isAuto { // so that no rank has to wait for another or is moved about, and Go programs have as many threads as processors
		if outer, err := topology.ParseList(o.outerShare()); err == nil && len(machine.Within(outer).CPUs) > 0 {
			machine = machine.Within(outer)
		}
		gpus, err := o.gpus()
		if err != nil {
			gpus = []int{} // they are not known
		}
		var procs []int
		bindings, procs = machine.Divide(o.nproc, gpus)
		if p.shares, err = sharesOf(bindings); err != nil {
			return p, err
		}
		if _, given := o.lookup(maxProcsVariable); !given {
			p.maxProcs = procs
		}
	}
	if o.threads == autoThreads {
		p.threads = machine.Share(bindings, o.nproc)
	}
	return p, nil
}

// outerShare is the share of the CPUs of the worker that has started this gorun; empty: it has none.
func (o *flags) outerShare() string {
	value, _ := o.lookup("GORUN_CPUS")
	share, _, _ := strings.Cut(value, "/")
	return share
}

// sharesOf returns what workers are told of their bindings, which package comm carries out. Programs that do not use it gain little by a
// binding, and lose much if something else runs on their CPUs.
func sharesOf(bindings []topology.Binding) (shares []string, err error) {
	all, err := topology.Allowed()
	for _, b := range bindings {
		shares = append(shares, topology.FormatList(b.CPUs)+"/"+topology.FormatList(all))
	}
	return shares, err
}

// requestedPolicy returns the policy that the user asked for; empty: none.
func (o *flags) requestedPolicy() topology.Policy {
	if o.numa == autoBinding || o.numa == noBinding {
		return ""
	}
	return topology.Policy(o.numa)
}

const maxProcsVariable = "GOMAXPROCS"

// gpus returns the GPU of each local rank, or nil if there is not one for each.
func (o *flags) gpus() ([]int, error) {
	devices, err := topology.Accelerators(o.host.root, "gpu", o.lookup)
	if err != nil || len(devices.GPUs) < o.nproc {
		return nil, err
	}
	return devices.GPUs[:o.nproc], nil
}

// devices returns a device for each local rank.
func (o *flags) devices() (topology.Devices, error) {
	d, err := topology.Accelerators(o.host.root, "gpu", o.lookup)
	if err != nil {
		return d, err
	}
	if d.Variable == "" { // workers without devices get the numbers all the same, as with torchrun
		d.Variable = "CUDA_VISIBLE_DEVICES"
		for i := range o.nproc {
			d.Names = append(d.Names, strconv.Itoa(i))
		}
	}
	if len(d.Names) < o.nproc {
		return d, usagef("%s: %d workers need one device each, and %s has %d: lower --nproc-per-node", o.given["virtual-local-rank"], o.nproc, d.Variable, len(d.Names))
	}
	d.Names = d.Names[:o.nproc]
	return d, nil
}

// threadsNote returns a note that each worker got one thread, if the program is likely to use OpenMP.
func (o *flags) threadsNote(program *launcher.Program) string {
	_, inherited := o.lookup(numThreads)
	if inherited || o.threads != 0 || o.nproc == 1 || !program.Python {
		return ""
	}
	return numThreads + " is not set, so gorun sets it to 1 for every worker; set it yourself, or use --omp-num-threads=auto to give each worker its share of the cores"
}
