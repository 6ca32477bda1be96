package main

// manifest is an object with the fields of a StatefulSet and of a Secret that deploy/ uses.
type manifest struct {
	APIVersion string            `yaml:"apiVersion"`
	Kind       string            `yaml:"kind"`
	Metadata   metadata          `yaml:"metadata"`
	Type       string            `yaml:"type"`
	Data       map[string]string `yaml:"data"`
	Spec       struct {
		ServiceName         string `yaml:"serviceName"`
		Replicas            int    `yaml:"replicas"`
		PodManagementPolicy string `yaml:"podManagementPolicy"`
		Selector            any    `yaml:"selector"`
		Template            struct {
			Metadata metadata `yaml:"metadata"`
			Spec     podSpec  `yaml:"spec"`
		} `yaml:"template"`
		Claims []struct {
			Metadata metadata `yaml:"metadata"`
			Spec     any      `yaml:"spec"`
		} `yaml:"volumeClaimTemplates"`
	} `yaml:"spec"`
}

type metadata struct {
	Name   string            `yaml:"name"`
	Labels map[string]string `yaml:"labels"`
}

type podSpec struct {
	Grace    int  `yaml:"terminationGracePeriodSeconds"`
	Token    bool `yaml:"automountServiceAccountToken"`
	Affinity any  `yaml:"affinity"`
	Security struct {
		NonRoot bool `yaml:"runAsNonRoot"`
		User    int  `yaml:"runAsUser"`
		Group   int  `yaml:"runAsGroup"`
		FSGroup int  `yaml:"fsGroup"`
		Seccomp any  `yaml:"seccompProfile"`
	} `yaml:"securityContext"`
	Containers []struct {
		Name       string   `yaml:"name"`
		Image      string   `yaml:"image"`
		PullPolicy string   `yaml:"imagePullPolicy"`
		Args       []string `yaml:"args"`
		Ports      []struct {
			Name     string `yaml:"name"`
			Port     int    `yaml:"containerPort"`
			Protocol string `yaml:"protocol"`
		} `yaml:"ports"`
		Env []struct {
			Name, Value string
			From        struct {
				Field struct {
					FieldPath string `yaml:"fieldPath"`
				} `yaml:"fieldRef"`
				Secret struct{ Name, Key string } `yaml:"secretKeyRef"`
			} `yaml:"valueFrom"`
		} `yaml:"env"`
		Startup   probe `yaml:"startupProbe"`
		Liveness  probe `yaml:"livenessProbe"`
		Readiness probe `yaml:"readinessProbe"`
		Resources any   `yaml:"resources"`
		Security  struct {
			Escalation bool                    `yaml:"allowPrivilegeEscalation"`
			ReadOnly   bool                    `yaml:"readOnlyRootFilesystem"`
			Caps       struct{ Drop []string } `yaml:"capabilities"`
		} `yaml:"securityContext"`
		Mounts []struct {
			Name     string `yaml:"name"`
			Path     string `yaml:"mountPath"`
			SubPath  string `yaml:"subPathExpr"`
			ReadOnly bool   `yaml:"readOnly"`
		} `yaml:"volumeMounts"`
	} `yaml:"containers"`
	Volumes []struct {
		Name   string `yaml:"name"`
		Secret struct {
			Name  string                       `yaml:"secretName"`
			Mode  int                          `yaml:"defaultMode"`
			Items []struct{ Key, Path string } `yaml:"items"`
		} `yaml:"secret"`
	} `yaml:"volumes"`
}

type probe struct {
	Get struct {
		Path string `yaml:"path"`
		Port string `yaml:"port"`
	} `yaml:"httpGet"`
	Period   int `yaml:"periodSeconds"`
	Failures int `yaml:"failureThreshold"`
}
