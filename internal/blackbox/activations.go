package blackbox

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// Activation is one life of an actor on a node, from the node's debug log: from its start to the start of its last
// message.
type Activation struct {
	Kind, ID    string
	Node        int
	From, Acted time.Time
}

var activationLine = regexp.MustCompile(
	`msg="cluster: an activation (began|ended)" kind=(\S+) id=(\S+) (?:at|acted)=(\d+)`,
)

// Activations returns all activations of the nodes, including the ended ones. An activation without an end line is
// assumed to act until its process ended, or until now.
func Activations(nodes []*Node) (all []Activation) {
	for n, node := range nodes {
		open := map[string]int{}
		for _, m := range activationLine.FindAllStringSubmatch(node.Log(), -1) {
			ns, _ := strconv.ParseInt(m[4], 10, 64)
			at, key := time.Unix(0, ns), m[2]+" "+m[3]
			i, known := open[key]
			switch {
			case m[1] == "began":
				open[key] = len(all)
				all = append(all, Activation{m[2], m[3], n, at, node.EndedAt()})
			case known:
				all[i].Acted = at
				delete(open, key)
			}
		}
	}
	return all
}

// TwoAtOnce names identities with two activations that acted on different nodes at one time, except for those that
// every node has.
func TwoAtOnce(all []Activation) (found []string) {
	by := map[string][]Activation{}
	for _, a := range all {
		by[a.Kind+" "+a.ID] = append(by[a.Kind+" "+a.ID], a)
	}
	for key, as := range by {
		for i, a := range as {
			for _, b := range as[i+1:] {
				if a.Node != b.Node && a.From.Before(b.Acted) && b.From.Before(a.Acted) {
					found = append(found, fmt.Sprintf("%s: node %d %s–%s, node %d %s–%s", key, a.Node, clock(a.From),
						clock(a.Acted), b.Node, clock(b.From), clock(b.Acted)))
				}
			}
		}
	}
	return found
}

func clock(t time.Time) string { return t.Format("05.000000") }
