package blackbox

import (
	"bytes"
	"slices"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"castellan/domain/kit/storetest"
)

func Exported(t *testing.T, addr string) []byte {
	t.Helper()
	a, err := NewClient("http://"+addr).Try("GET", "/metrics", nil, nil)
	if err != nil || a.Status != 200 {
		t.Fatal(a.Status, err)
	}
	return a.Body
}

// Scrape reads the metrics of a node, by name.
func Scrape(t *testing.T, addr string) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return storetest.Value(parser.TextToMetricFamilies(bytes.NewReader(Exported(t, addr))))(t)
}

// Value returns a counter or gauge with these labels (name=value). Series with further labels are added up.
func Value(families map[string]*dto.MetricFamily, name string, labels ...string) (sum float64) {
	for _, m := range families[name].GetMetric() {
		has := func(label string) bool {
			return slices.ContainsFunc(m.GetLabel(),
				func(l *dto.LabelPair) bool { return l.GetName()+"="+l.GetValue() == label })
		}
		if !slices.ContainsFunc(labels, func(label string) bool { return !has(label) }) {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return sum
}
