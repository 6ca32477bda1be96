package blackbox

import (
	"os/exec"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/internal/child"
)

func TestTwoAtOnce(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	for _, c := range []struct {
		name string
		all  []Activation
		want int
	}{
		{"one after the other",
			[]Activation{{"c", "1", 0, at(1), at(3)}, {"c", "1", 1, at(4), at(9)}, {"c", "1", 0, at(9), at(12)}}, 0},
		{"on one node", []Activation{{"c", "1", 0, at(1), at(3)}, {"c", "1", 0, at(2), at(9)}}, 0},
		{"other identities", []Activation{{"c", "1", 0, at(1), at(3)}, {"c", "2", 1, at(2), at(9)},
			{"d", "1", 1, at(2), at(9)}}, 0},
		{"one within the other", []Activation{{"c", "1", 0, at(1), at(9)}, {"c", "1", 1, at(4), at(5)}}, 1},
		{"one that goes on", []Activation{{"c", "1", 0, at(1), at(5)}, {"c", "1", 1, at(4), at(9)},
			{"c", "2", 1, at(4), at(9)}}, 1},
	} {
		if got := TwoAtOnce(c.all); len(got) != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestActivationsOfLogs(t *testing.T) {
	p := storetest.Value(child.Start(exec.Command("true")))(t)
	<-p.Ended()
	n := &Node{Process: p, log: newRecord()}
	n.log.Write([]byte(`time=x level=DEBUG msg="cluster: an activation began" kind=challenge id=A at=1000000000
time=x level=DEBUG msg="cluster: an activation began" kind=user id=A at=2000000000
time=x level=DEBUG msg="cluster: an activation ended" kind=challenge id=A acted=3000000000
time=x level=DEBUG msg="cluster: an activation began" kind=challenge id=A at=4000000000
`))
	got := Activations([]*Node{n})
	if len(got) != 3 || !got[0].Acted.Equal(time.Unix(3, 0)) || !got[1].Acted.Equal(n.EndedAt()) ||
		!got[2].From.Equal(time.Unix(4, 0)) || !got[2].Acted.Equal(n.EndedAt()) {
		t.Errorf("%+v", got)
	}
}
