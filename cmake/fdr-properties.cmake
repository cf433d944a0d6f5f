# SPDX-License-Identifier: MIT
# Properties of targets that link fdr, in the build tree and in the installed package.

define_property(TARGET PROPERTY FDR_INSTRUMENT_ALL
    BRIEF_DOCS "fdr::instrument also hooks C++ functions of system headers, and those that the compiler inlines"
    INITIALIZE_FROM_VARIABLE FDR_INSTRUMENT_ALL)
