package topology

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// gpus lists the GPUs of all vendors. A device counts if this process has its device file: in a container the
// kernel shows those of the whole machine.
func (r *reader) gpus() []GPU {
	var all []GPU
	for _, of := range [][]GPU{r.nvidia(), r.amd(), r.intel()} {
		for i, g := range of {
			g.Index = i
			all = append(all, g)
		}
	}
	return all
}

// nvidia sorts by PCI address. Without /proc of the driver, as in some sandboxes, the device files alone count.
func (r *reader) nvidia() []GPU {
	var minors []int
	for _, file := range r.glob("dev/nvidia[0-9]*") {
		if minor, ok := suffixNumber(file, "nvidia"); ok {
			minors = append(minors, minor)
		}
	}
	var gpus []GPU
	for _, dir := range r.glob("proc/driver/nvidia/gpus/*") {
		info := fields(r.text(dir+"/information"), ":")
		minor, err := strconv.Atoi(info["Device Minor"])
		if err == nil && !slices.Contains(minors, minor) || info["GPU Excluded"] == "Yes" {
			continue
		}
		bus := path.Base(dir)
		gpus = append(gpus, GPU{Vendor: NVIDIA, Bus: bus, UUID: info["GPU UUID"], Node: r.nodeOf("sys/bus/pci/devices/" + bus)})
	}
	if len(gpus) == 0 {
		for range minors {
			gpus = append(gpus, GPU{Vendor: NVIDIA, Node: -1})
		}
	}
	return gpus
}

// amd lists the compute nodes of the ROCm driver, in the driver's order.
func (r *reader) amd() []GPU {
	files := r.glob("sys/class/kfd/kfd/topology/nodes/*/properties")
	slices.SortFunc(files, func(a, b string) int { return cmp.Compare(atoi(path.Base(path.Dir(a))), atoi(path.Base(path.Dir(b)))) })
	var gpus []GPU
	for _, file := range files {
		of := fields(r.text(file), " ")
		if atoi(of["simd_count"]) == 0 || !r.exists("dev/dri/renderD"+of["drm_render_minor"]) {
			continue // a CPU, or not ours
		}
		at := atoi(of["location_id"])
		bus := fmt.Sprintf("%04x:%02x:%02x.%x", atoi(of["domain"]), at>>8&0xff, at>>3&0x1f, at&7)
		g := GPU{Vendor: AMD, Bus: bus, Node: r.nodeOf("sys/bus/pci/devices/" + bus)}
		if id, err := strconv.ParseUint(of["unique_id"], 10, 64); err == nil && id != 0 {
			g.UUID = fmt.Sprintf("GPU-%016x", id)
		}
		gpus = append(gpus, g)
	}
	return gpus
}

func (r *reader) intel() []GPU {
	var gpus []GPU
	for _, dir := range r.glob("sys/class/drm/renderD*") {
		device := dir + "/device"
		if r.text(device+"/vendor") != "0x8086" || !r.exists("dev/dri/"+path.Base(dir)) {
			continue
		}
		bus := fields(r.text(device+"/uevent"), "=")["PCI_SLOT_NAME"]
		gpus = append(gpus, GPU{Vendor: Intel, Bus: bus, Node: r.nodeOf(device)})
	}
	return gpus
}

// nodeOf returns the NUMA node of a PCI device.
func (r *reader) nodeOf(dir string) int { return max(-1, r.number(dir+"/numa_node", -1)) }

// fields reads lines of a name, a separator and a value.
func fields(text, separator string) map[string]string {
	of := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, separator)
		of[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return of
}
