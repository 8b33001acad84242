package manager

var pbs = &Manager{Name: "PBS", lists: []hostList{{"PBS_NODEFILE", true, parseTable(hostInLine)}}}
