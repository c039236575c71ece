// Command policytypes checks the types in a ValidatingAdmissionPolicy as Kubernetes'
// controller-manager does, against the schemas that an API server has now.
//
// Usage: policytypes KUBECONFIG < POLICY.json
//
// It prints the warnings as JSON: those that the controller-manager would write into the status.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	v1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
)

func run(kubeconfig string) error {
	var policy v1.ValidatingAdmissionPolicy
	if err := json.NewDecoder(os.Stdin).Decode(&policy); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	groups, err := restmapper.GetAPIGroupResources(client)
	if err != nil {
		return err
	}
	checker := validating.TypeChecker{
		SchemaResolver: &resolver.ClientDiscoveryResolver{Discovery: client},
		RestMapper:     restmapper.NewDiscoveryRESTMapper(groups),
	}
	return json.NewEncoder(os.Stdout).Encode(checker.Check(&policy))
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: policytypes KUBECONFIG < POLICY.json")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "policytypes:", err)
		os.Exit(1)
	}
}
