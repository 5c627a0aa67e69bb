// Command pod-security reads Kubernetes objects (YAML, one stream) from standard input and tells which of their
// pods the admission controller of a namespace labelled "pod-security.kubernetes.io/enforce: restricted" would
// refuse. The rules are Kubernetes' own package, not a copy of them. Fields that the types don't have are errors.
//
// Status 0: all pods are admitted; 1: one is not, or an object can't be read. Prints a line for each pod.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"
)

type pod struct {
	metadata *metav1.ObjectMeta
	spec     *corev1.PodSpec
}

func podOf(document []byte, kind string) (*pod, error) {
	switch kind {
	case "Pod":
		var object corev1.Pod
		err := yaml.UnmarshalStrict(document, &object)
		return &pod{&object.ObjectMeta, &object.Spec}, err
	case "Deployment":
		var object appsv1.Deployment
		err := yaml.UnmarshalStrict(document, &object)
		return &pod{&object.Spec.Template.ObjectMeta, &object.Spec.Template.Spec}, err
	case "StatefulSet":
		var object appsv1.StatefulSet
		err := yaml.UnmarshalStrict(document, &object)
		return &pod{&object.Spec.Template.ObjectMeta, &object.Spec.Template.Spec}, err
	case "Job":
		var object batchv1.Job
		err := yaml.UnmarshalStrict(document, &object)
		return &pod{&object.Spec.Template.ObjectMeta, &object.Spec.Template.Spec}, err
	case "DaemonSet", "CronJob", "ReplicaSet", "ReplicationController":
		return nil, fmt.Errorf("%s has pods, and this program does not know where", kind)
	}
	return nil, nil
}

func main() {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(os.Stdin))
	status := 0
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		var head struct {
			metav1.TypeMeta `json:",inline"`
			Metadata        metav1.ObjectMeta `json:"metadata"`
		}
		if err := yaml.Unmarshal(document, &head); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		found, err := podOf(document, head.Kind)
		if err != nil {
			fmt.Printf("%s %s: %v\n", head.Kind, head.Metadata.Name, err)
			status = 1
			continue
		}
		if found == nil {
			continue
		}
		result := policy.AggregateCheckResults(evaluator.EvaluatePod(restricted, found.metadata, found.spec))
		if result.Allowed {
			fmt.Printf("%s %s: restricted\n", head.Kind, head.Metadata.Name)
			continue
		}
		status = 1
		fmt.Printf("%s %s: refused: %s\n", head.Kind, head.Metadata.Name, strings.ReplaceAll(result.ForbiddenDetail(), "\n", " "))
	}
	os.Exit(status)
}
