package topology

import (
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// Devices are the accelerators that workers see, numbered as they number them.
type Devices struct {
	Vendor   string   // of all of them; empty: there are none
	Variable string   // environment variable that narrows a process to some of them, such as CUDA_VISIBLE_DEVICES
	Names    []string // what Variable holds for each of them alone
	GPUs     []int    // where each is in Machine.GPUs; -1: not known
}

// The variables that list devices.
const (
	cudaDevices = "CUDA_VISIBLE_DEVICES" // read by AMD's runtime, too
	hipDevices  = "HIP_VISIBLE_DEVICES"
	rocrDevices = "ROCR_VISIBLE_DEVICES" // the other two count in what this one leaves
	zeAffinity  = "ZE_AFFINITY_MASK"
)

// Accelerators lists the devices that a process with this environment sees. The kind is gpu or cuda for NVIDIA's
// or else AMD's, or xpu for Intel's; other kinds are errors. If there are none, Devices is empty and there is no
// error.
//
// A variable that lists devices is read as the vendor's runtime reads it. Its entries are numbers and UUIDs. The list ends
// before the first entry that is neither, or that is no device as far as the system shows. If an entry is there twice, the
// list is empty. If the system shows no device at all, every entry counts as a device. The tiles of an Intel GPU are devices only if ZE_AFFINITY_MASK lists them.
func Accelerators(root fs.FS, kind string, getenv func(string) (string, bool)) (Devices, error) {
	r := &reader{root: root}
	e := environment{getenv: getenv, all: r.gpus()}
	if r.err != nil {
		return Devices{}, fmt.Errorf("cannot read the hardware of this machine: %w", r.err)
	}
	nvidia, amd := e.of(NVIDIA), e.of(AMD)
	switch kind {
	case "gpu", "cuda":
		if len(nvidia) == 0 && (len(amd) > 0 || !e.has(cudaDevices) && (e.has(hipDevices) || e.has(rocrDevices))) {
			return e.visibleAMD(amd), nil
		}
		return e.visible(NVIDIA, nvidia, cudaDevices), nil
	case "xpu":
		return e.visible(Intel, e.of(Intel), zeAffinity), nil
	}
	return Devices{}, fmt.Errorf("devices of the kind %q: want gpu, cuda or xpu", kind)
}

// environment holds what decides which devices are visible. Devices are identified by their index in all.
type environment struct {
	getenv func(string) (string, bool)
	all    []GPU
}

func (e environment) has(variable string) bool {
	_, ok := e.getenv(variable)
	return ok
}

func (e environment) of(vendor string) []int {
	var at []int
	for i, g := range e.all {
		if g.Vendor == vendor {
			at = append(at, i)
		}
	}
	return at
}

func (e environment) visibleAMD(there []int) Devices {
	if e.has(rocrDevices) {
		left := e.visible(AMD, there, rocrDevices)
		if len(left.Names) == 0 {
			return left
		}
		there = left.GPUs
	}
	if !e.has(hipDevices) && e.has(cudaDevices) {
		return e.visible(AMD, there, cudaDevices)
	}
	return e.visible(AMD, there, hipDevices)
}

// visible returns the devices, of those there, that variable lists, or all if it is not set.
func (e environment) visible(vendor string, there []int, variable string) Devices {
	d := Devices{Vendor: vendor, Variable: variable}
	list, ok := e.getenv(variable)
	if !ok {
		d.GPUs = there
		for i := range there {
			d.Names = append(d.Names, strconv.Itoa(i))
		}
	} else {
		d.Names, d.GPUs = e.choose(list, there)
	}
	if len(d.Names) == 0 {
		return Devices{}
	}
	return d
}

func (e environment) choose(list string, there []int) (names []string, gpus []int) {
	for entry := range strings.SplitSeq(list, ",") {
		entry = strings.TrimSpace(entry)
		gpu, ok := e.find(entry, there)
		if !ok {
			break
		}
		if slices.Contains(names, entry) {
			return nil, nil
		}
		names, gpus = append(names, entry), append(gpus, gpu)
	}
	return names, gpus
}

// find returns the device that an entry names, or -1 if that is unknown. ok is false if the entry names none.
func (e environment) find(entry string, there []int) (gpu int, ok bool) {
	// The runtimes read a number up to the first character that is no digit: 1.0 is a tile of Intel's GPU 1.
	digits := len(entry) - len(strings.TrimLeft(entry, "0123456789"))
	if digits > 0 {
		n, err := strconv.Atoi(entry[:digits])
		switch {
		case len(there) == 0:
			return -1, true
		case err != nil || n >= len(there):
			return -1, false
		}
		return there[n], true
	}
	// GPU-<uuid> or as much of it as is needed, MIG-GPU-<uuid>/<instance>/<instance>, or MIG-<another uuid>.
	uuid, _, _ := strings.Cut(strings.TrimPrefix(entry, "MIG-"), "/")
	if !strings.HasPrefix(entry, "GPU-") && !strings.HasPrefix(entry, "MIG-") {
		return -1, false
	}
	gpu = -1
	for _, at := range there {
		if at >= 0 && strings.HasPrefix(e.all[at].UUID, uuid) {
			if gpu >= 0 {
				return -1, false // could be either
			}
			gpu = at
		}
	}
	return gpu, true
}
