# SPDX-License-Identifier: Apache-2.0
# Links host.cpp with the library of a model; run in the model's folder, with the variables of its
# own build and HOST_SOURCE.

.DEFAULT_GOAL := plain_host
include Vtop.mk

plain_host.o: $(HOST_SOURCE)
	$(OBJCACHE) $(CXX) $(CXXFLAGS) $(CPPFLAGS) $(OPT_FAST) -c -o $@ $<

plain_host: plain_host.o memory_dpi.o $(VK_GLOBAL_OBJS) $(VM_PREFIX)__ALL.a
	$(LINK) $^ $(LIBS) -o $@
