package topology

import (
	"fmt"
	"strings"
	"testing"
)

const (
	twoAMD = `
-- dev/dri/renderD128 --
-- dev/dri/renderD130 --
-- sys/class/kfd/kfd/topology/nodes/0/properties --
cpu_cores_count 64
simd_count 0
-- sys/class/kfd/kfd/topology/nodes/2/properties --
simd_count 440
drm_render_minor 128
domain 0
location_id 49920
unique_id 4660
-- sys/class/kfd/kfd/topology/nodes/10/properties --
simd_count 440
drm_render_minor 130
domain 1
location_id 265
-- sys/class/kfd/kfd/topology/nodes/11/properties --
simd_count 440
drm_render_minor 131
-- sys/bus/pci/devices/0000:c3:00.0/numa_node --
1
`
	oneIntel = `
-- dev/dri/renderD128 --
-- dev/dri/renderD129 --
-- sys/class/drm/renderD128/device/vendor --
0x1a03
-- sys/class/drm/renderD129/device/vendor --
0x8086
-- sys/class/drm/renderD129/device/numa_node --
1
-- sys/class/drm/renderD129/device/uevent --
DRIVER=xe
PCI_SLOT_NAME=0000:3a:00.0
-- sys/class/drm/renderD135/device/vendor --
0x8086
`
	onlyFiles = "-- dev/nvidia0 --\n-- dev/nvidia1 --\n-- dev/nvidiactl --\n-- dev/nvidia-uvm --\n"
	// A container with one of three GPUs, and a fourth that the driver was told to leave alone.
	container = `
-- dev/nvidia1 --
-- dev/nvidia3 --
-- proc/driver/nvidia/gpus/0000:01:00.0/information --
Device Minor: 	 0
-- proc/driver/nvidia/gpus/0000:02:00.0/information --
Device Minor: 	 1
-- proc/driver/nvidia/gpus/0000:03:00.0/information --
Device Minor: 	 2
-- proc/driver/nvidia/gpus/0000:04:00.0/information --
Device Minor: 	 3
GPU Excluded: 	 Yes
`
	otherGPUs = `
-- proc/driver/nvidia/gpus/0000:01:00.0/information --
Device Minor: 	 0
`
)

func TestReadGPUs(t *testing.T) {
	const cpus = "-- sys/devices/system/cpu/online --\n0\n"
	for _, c := range []struct {
		name, files, want string
	}{
		{"none", "", ""},
		{"only device files", onlyFiles, "{NVIDIA 0   -1} {NVIDIA 1   -1}"},
		{"container", container, "{NVIDIA 0 0000:02:00.0  -1}"},
		{"container without GPUs", otherGPUs, ""},
		{"AMD and Intel", oneIntel + twoAMD, "{AMD 0 0000:c3:00.0 GPU-0000000000001234 1} {AMD 1 0001:01:01.1  -1} {Intel 0 0000:3a:00.0  1}"},
	} {
		m, err := Read(tree(t, cpus+c.files))
		if got := strings.Trim(fmt.Sprint(m.GPUs), "[]"); err != nil || got != c.want {
			t.Errorf("%s: %s, %v; want %s", c.name, got, err, c.want)
		}
	}
}

func TestAccelerators(t *testing.T) {
	none := ""
	cuda := func(names string) string { return "NVIDIA CUDA_VISIBLE_DEVICES " + names }
	hip := func(names string) string { return "AMD HIP_VISIBLE_DEVICES " + names }
	for _, c := range []struct {
		kind, files string
		environ     string // NAME=value, blanks between
		want        string // vendor, variable, names, their GPUs
	}{
		{"gpu", "", "", none},
		{"gpu", onlyFiles, "", cuda("[0 1] [0 1]")},
		{"cuda", onlyFiles, "CUDA_VISIBLE_DEVICES=1", cuda("[1] [1]")},
		{"gpu", onlyFiles, "CUDA_VISIBLE_DEVICES=1,0", cuda("[1 0] [1 0]")},
		{"gpu", onlyFiles, "CUDA_VISIBLE_DEVICES=", none},
		{"gpu", onlyFiles, "CUDA_VISIBLE_DEVICES=-1", none},
		{"gpu", onlyFiles, "CUDA_VISIBLE_DEVICES=0,-1,1", cuda("[0] [0]")},
		{"gpu", onlyFiles, "CUDA_VISIBLE_DEVICES=0,,1", cuda("[0] [0]")},
		{"gpu", onlyFiles, "CUDA_VISIBLE_DEVICES=1,2,0", cuda("[1] [1]")},
		{"gpu", onlyFiles, "CUDA_VISIBLE_DEVICES=0,0", none},
		{"gpu", onlyFiles, "CUDA_VISIBLE_DEVICES=NoDevFiles", none},
		{"gpu", onlyFiles, "CUDA_VISIBLE_DEVICES=99999999999999999999", none},
		{"gpu", onlyFiles, "CUDA_VISIBLE_DEVICES=MIG-1234,GPU-5", cuda("[MIG-1234 GPU-5] [-1 -1]")},
		{"gpu", onlyFiles, "HIP_VISIBLE_DEVICES=0", cuda("[0 1] [0 1]")},
		{"gpu", onlyFiles + twoAMD, "", cuda("[0 1] [0 1]")},
		{"gpu", "", "CUDA_VISIBLE_DEVICES=4,5", cuda("[4 5] [-1 -1]")},
		{"gpu", "", "HIP_VISIBLE_DEVICES=4", hip("[4] [-1]")},
		{"gpu", "", "ROCR_VISIBLE_DEVICES=4,7", hip("[0 1] [-1 -1]")},
		{"gpu", twoAMD, "", hip("[0 1] [0 1]")},
		{"gpu", twoAMD, "HIP_VISIBLE_DEVICES=1", hip("[1] [1]")},
		{"gpu", twoAMD, "CUDA_VISIBLE_DEVICES=1", "AMD CUDA_VISIBLE_DEVICES [1] [1]"},
		{"gpu", twoAMD, "CUDA_VISIBLE_DEVICES=1 HIP_VISIBLE_DEVICES=0", hip("[0] [0]")},
		{"gpu", twoAMD, "ROCR_VISIBLE_DEVICES=1", hip("[0] [1]")},
		{"gpu", twoAMD, "ROCR_VISIBLE_DEVICES=1,0 HIP_VISIBLE_DEVICES=1", hip("[1] [0]")},
		{"gpu", twoAMD, "ROCR_VISIBLE_DEVICES=GPU-0000000000001234", hip("[0] [0]")},
		{"gpu", twoAMD, "ROCR_VISIBLE_DEVICES= HIP_VISIBLE_DEVICES=1", none},
		{"gpu", oneIntel, "", none},
		{"xpu", oneIntel, "", "Intel ZE_AFFINITY_MASK [0] [2]"},
		{"xpu", oneIntel, "ZE_AFFINITY_MASK=0.0,0.1", "Intel ZE_AFFINITY_MASK [0.0 0.1] [2 2]"},
		{"xpu", onlyFiles, "", none},
	} {
		files := c.files
		if strings.HasPrefix(c.want, "Intel") {
			files += twoAMD // for Intel's to be further on in Machine.GPUs
		}
		got, err := Accelerators(tree(t, files), c.kind, environ(c.environ))
		if s := show(got); err != nil || s != c.want {
			t.Errorf("%s, %q: %s, %v; want %s", c.kind, c.environ, s, err, c.want)
		}
	}
	if d, err := Accelerators(tree(t, ""), "tpu", environ("")); err == nil || err.Error() != `devices of the kind "tpu": want gpu, cuda or xpu` {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestAcceleratorsByUUID(t *testing.T) {
	for _, c := range [][2]string{
		{"GPU-00000002-aaaa,GPU-00000000", "NVIDIA CUDA_VISIBLE_DEVICES [GPU-00000002-aaaa GPU-00000000] [2 0]"},
		{"MIG-GPU-00000003-aaaa/1/0,MIG-GPU-00000003-aaaa/2/0", "NVIDIA CUDA_VISIBLE_DEVICES [MIG-GPU-00000003-aaaa/1/0 MIG-GPU-00000003-aaaa/2/0] [3 3]"},
		{"GPU-00000001,GPU-0000", "NVIDIA CUDA_VISIBLE_DEVICES [GPU-00000001] [1]"}, // the second could be any
	} {
		got, err := Accelerators(layouts["gpus"].files(), "gpu", environ("CUDA_VISIBLE_DEVICES="+c[0]))
		if s := show(got); err != nil || s != c[1] {
			t.Errorf("%s: %s, %v; want %s", c[0], s, err, c[1])
		}
	}
}

func show(d Devices) string {
	if d.Vendor == "" && d.Variable == "" && d.Names == nil && d.GPUs == nil {
		return ""
	}
	return fmt.Sprint(d.Vendor, " ", d.Variable, " ", d.Names, " ", d.GPUs)
}

func environ(list string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for kv := range strings.FieldsSeq(list) {
			if value, ok := strings.CutPrefix(kv, name+"="); ok {
				return value, true
			}
		}
		return "", false
	}
}
